package stack

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Kill ends every process of the stack with SIGKILL, all at once, and waits for
// the one that the test started. It does nothing when none runs.
func (s *Stack) Kill() error {
	if s.cmd == nil {
		return nil
	}
	var err error
	if !s.ended() {
		err = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
	for _, pid := range s.database() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has just ended is no error
	}
	<-s.gone
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// database lists the processes of the stack's own Postgres: the postmaster that
// its pid file names, if it serves this very data, and its children.
func (s *Stack) database() []int {
	data := filepath.Join(s.Dir, "postgres", "server", "data")
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !serves(pid, data) {
		return nil
	}
	return append([]int{pid}, children(pid)...)
}

// serves tells whether a process works in the folder, as a postmaster does in
// its data. Without /proc nobody can tell, and the number is believed.
func serves(pid int, data string) bool {
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		return true
	}
	cwd, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return false
	}
	folder, err := os.Stat(data)
	return err == nil && os.SameFile(cwd, folder)
}

func children(of int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(raw), ") ") // behind the name: state, parent
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[1] != strconv.Itoa(of) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endWithUs has a process end as by Ctrl-C when the test's own process ends,
// however that does: a shell waits for the end of a pipe that only we hold. What
// it returns calls that off.
func endWithUs(pid int) (off func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	sh := exec.CommandContext(context.Background(), "/bin/sh", "-c", `read -r _; kill -INT "$0"`, strconv.Itoa(pid))
	sh.Stdin, sh.SysProcAttr = r, &syscall.SysProcAttr{Setpgid: true}
	if err := sh.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return func() {
		_ = sh.Process.Kill() // before the pipe ends: the number may be another's by now
		_ = sh.Wait()
		_ = w.Close()
	}, nil
}
