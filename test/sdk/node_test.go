package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outcome is what node/reporter.js prints of a test.
type outcome struct {
	Name    string `json:"name"`
	Failure string `json:"failure"`
}

// TestTheSDKForNode runs the tests in node/, each as one of its own here. They
// ask this process for worlds and scripts (see bench).
func TestTheSDKForNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, err := filepath.Glob("node/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	cmd := exec.CommandContext(t.Context(), node(t), append([]string{"--test", "--test-concurrency=3", "--test-reporter=./node/reporter.js"}, files...)...)
	cmd.Env = append(os.Environ(), "WEIR_BENCH="+b.URL)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	failed := b.serve(ended)
	var outcomes []outcome
	for line := range strings.Lines(out.String()) {
		var o outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		outcomes = append(outcomes, o)
	}
	for _, o := range outcomes {
		t.Run(o.Name, func(t *testing.T) {
			if o.Failure != "" {
				t.Error(o.Failure)
			}
		})
	}
	if len(outcomes) == 0 || failed != nil && !t.Failed() {
		t.Errorf("node ended with %v after %d tests\n%s", failed, len(outcomes), stderr.String())
	}
}

// node is the program that runs the tests: the one that scripts/setup.sh put
// beside the SDK where the machine's is too old, else the machine's.
func node(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("node/node_modules/openai/package.json"); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the SDK for Node is not installed: run scripts/setup.sh sdk, or npm install --no-package-lock in test/sdk/node")
	}
	if own := "node/node_modules/.bin/node"; exists(own) {
		return own
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("Node is not installed: run scripts/setup.sh sdk, or install Node 20 or a newer one (Debian, Ubuntu: apt install nodejs npm; macOS: brew install node)")
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
