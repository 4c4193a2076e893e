package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Bin is a folder with dev and api, built from the present sources, once for
// each test binary. RemoveBin takes it away.
var Bin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir-bin-")
	if err != nil {
		return "", err
	}
	args := append(append([]string{"build"}, buildFlags...), "-o", dir+string(filepath.Separator), "./cmd/dev", "./cmd/api")
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, os.Chmod(dir, 0o755)
})

// RemoveBin removes what Bin built.
func RemoveBin() {
	if dir, _ := Bin(); dir != "" {
		_ = os.RemoveAll(dir)
	}
}
