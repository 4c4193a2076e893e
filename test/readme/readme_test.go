// Package readme runs the lines that a newcomer is told to paste.
package readme

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/test/stack"
)

const (
	begin   = "<!-- test:first-call -->"
	end     = "<!-- test:end -->"
	address = "http://127.0.0.1:8080"
)

// TestTheFirstCallOfTheReadmeWorksAsPasted runs the shell blocks between the
// markers of README.md, as they stand, in one bash in a copy of the repository
// with a stack running. Only the address is another one: the port of the README
// may be taken. Their last line shows the usage, and is asked again until the
// call has arrived there, since a machine that runs tests is slower than most.
func TestTheFirstCallOfTheReadmeWorksAsPasted(t *testing.T) {
	pasted := strings.TrimSpace(strings.Join(blocksOf(t, filepath.Join(stack.Root(), "README.md")), "\n"))
	if pasted == "" {
		t.Fatalf("README.md has no shell block behind %s", begin)
	}
	home := copyOfTheRepository(t)
	s := stack.At(filepath.Join(home, ".weir"))
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
		stack.RemoveBin()
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	last := pasted[strings.LastIndex(pasted, "\n")+1:]
	script := pasted + "\nusage() { " + last + "; }\n" + askAgain
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(script, address, s.BaseURL()))
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "WEIR_DATA=", "DATABASE_URL=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	_, usage, _ := strings.Cut(string(out), marker)
	if n := requests(usage); n < 1 {
		t.Errorf("the last line says of %d requests:\n%s\n%s", n, usage, stderr.String())
	}
}

// askAgain runs the last line until it tells of a request, for some seconds.
const (
	marker   = "== usage =="
	askAgain = `
for try in $(seq 100); do
	shown=$(usage)
	if [[ $shown =~ \"requests\":\ ?[1-9] ]]; then break; fi
	sleep 0.1
done
printf '%s\n%s\n' '` + marker + `' "$shown"
`
)

// requests is the total that a usage report states; −1 if it is none.
func requests(report string) int {
	var r struct {
		Totals *struct{ Requests int }
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil || r.Totals == nil {
		return -1
	}
	return r.Totals.Requests
}

// blocksOf lists the shell blocks behind the marker, up to the end marker or the
// end of the file.
func blocksOf(t *testing.T, path string) (blocks []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var block []string
	marked, inside := false, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch fence := strings.TrimSpace(line); {
		case fence == begin, fence == end:
			marked = fence == begin
		case inside && fence == "```":
			blocks, block, inside = append(blocks, strings.Join(block, "\n")), nil, false
		case inside:
			block = append(block, line)
		case marked && fence == "```sh":
			inside = true
		}
	}
	return blocks
}

// copyOfTheRepository is a folder with what the pasted lines find there: the
// binaries.
func copyOfTheRepository(t *testing.T) string {
	t.Helper()
	bin, err := stack.Bin()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "weir-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) }) // in the system's folder for such things
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, filepath.Join(home, "bin")); err != nil {
		t.Fatal(err)
	}
	return home
}
