package stack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/gofrs/flock"
)

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// programs are what is built.
var programs = []string{"dev", "api"}

// Bin is a folder with dev and api, built from the present sources, once for
// each test binary. RemoveBin takes it away.
var Bin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir-bin-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), buildInto(dir))
})

// buildInto builds in a folder that all tests of this checkout share, where
// what is up to date is not linked again, and takes the result from there.
func buildInto(dir string) error {
	shared := filepath.Join(os.TempDir(), fmt.Sprintf("weir-built-%d-%x", os.Getuid(), sha256.Sum256(fmt.Append(nil, Root(), buildFlags))))
	if err := os.MkdirAll(shared, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(shared, "lock"))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }() // the process's end does it too
	args := append(append([]string{"build"}, buildFlags...), "-ldflags=-w", "-o", shared+string(filepath.Separator))
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, p := range programs {
		if err := os.Link(filepath.Join(shared, p), filepath.Join(dir, p)); err != nil {
			return err
		}
	}
	return nil
}

// RemoveBin removes what Bin made.
func RemoveBin() {
	if dir, _ := Bin(); dir != "" {
		_ = os.RemoveAll(dir)
	}
}
