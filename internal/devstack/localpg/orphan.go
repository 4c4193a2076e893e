package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// endOrphan stops the server that an earlier life left running on this data.
//
// A postmaster.pid whose process is not a server of this data is stale, but
// postgres only sees a living process of that number and refuses to start. It
// must not be removed: the line about shared memory keeps two servers off one
// folder. So the number is replaced by ours: postgres never takes its own
// parent for another server.
func endOrphan(ctx context.Context, data string) error {
	path := filepath.Join(data, "postmaster.pid")
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(raw), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(lines[0]))
	if pid <= 1 {
		return nil // not a number: postgres says better than we could what is wrong
	}
	if serves(ctx, pid, data) {
		if err := endStranger(ctx, pid, data); err != nil {
			return err
		}
	} else if syscall.Kill(pid, 0) == nil {
		lines[0] = strconv.Itoa(os.Getpid())
		return overwrite(path, strings.Join(lines, "\n"))
	}
	return removeShortSocket(lines)
}

// endStranger stops a server that is not our child.
func endStranger(ctx context.Context, pid int, data string) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(gone)
		poll(watch, func() bool { return !serves(watch, pid, data) })
	}()
	if err := shutDown(ctx, p, gone); err != nil {
		return fmt.Errorf("a server of an earlier run: %w", err)
	}
	return ctx.Err()
}

// serves tells whether a process is the server of a data folder: that is its
// working directory, or, where /proc does not exist, in its command line.
func serves(ctx context.Context, pid int, data string) bool {
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		cwd, errCwd := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
		folder, errData := os.Stat(data)
		return errCwd == nil && errData == nil && os.SameFile(cwd, folder)
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && bytes.Contains(out, []byte(data))
}

// overwrite keeps the file's owner and mode.
func overwrite(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// removeShortSocket removes the socket folder of a life that could not do so
// itself; it is the fifth line of postmaster.pid.
func removeShortSocket(lines []string) error {
	if len(lines) < 5 || !strings.HasPrefix(lines[4], filepath.Join(shortTemp, "weir-pg-")) {
		return nil
	}
	return os.RemoveAll(lines[4])
}
