package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// nanny runs the server ("$@" after the first two) until nobody holds the pipe
// open for writing any more, however its holders died. A line on the pipe is
// the name of a file to make: proof to a guest that it came in time. The
// subshell in the background leaves no child to wait for.
const nanny = `
door=$1 ended=$2; shift 2
(
	"$@" &
	server=$!
	{ while read -r guest; do : >"$guest"; done; kill -INT $server; } <"$door" &
	porter=$!
	wait $server
	kill $porter 2>/dev/null
	: >"$ended"
) </dev/null &
`

// Share joins the server that other processes run in o.Dir, or starts it. It
// ends when the last process that shares it has ended, killed or not. When this
// call started it, fresh runs before anybody else can come. Calls of several
// processes wait for each other.
func Share(ctx context.Context, o Options, fresh func(context.Context, Address) error) (Address, error) {
	if err := os.MkdirAll(o.Dir, 0o711); err != nil {
		return Address{}, err
	}
	lock := flock.New(filepath.Join(o.Dir, "lock"))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return Address{}, fmt.Errorf("waiting for another process to start postgres: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if at, err := join(ctx, filepath.Join(o.Dir, "server")); err == nil {
		return at, nil
	}
	c, err := prepare(ctx, o)
	if err != nil {
		return Address{}, err
	}
	if err := pastLeftovers(ctx, c.runShared); err != nil {
		return Address{}, err
	}
	at := onSocket(c.socketDir)
	return at, fresh(ctx, at)
}

// RemoveUnused removes the folder of a shared server with all its data, unless
// a process uses it.
func RemoveUnused(dir string) error {
	lock := flock.New(filepath.Join(dir, "lock"))
	if free, err := lock.TryLock(); err != nil || !free {
		return err
	}
	defer func() { _ = lock.Close() }()
	home, err := filepath.EvalSymlinks(filepath.Join(dir, "server"))
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	fd, err := openDoor(home)
	if err == nil {
		return syscall.Close(fd)
	}
	return errors.Join(os.RemoveAll(home), os.RemoveAll(dir))
}

// openDoor is an error when nobody looks after a server.
func openDoor(home string) (int, error) {
	return syscall.Open(filepath.Join(home, "door"), syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// join makes this process a holder of a server that runs for others. The pipe
// stays open for the life of the process. A server that is ending, or that lost
// its nanny, is an error.
func join(ctx context.Context, home string) (Address, error) {
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return Address{}, err
	}
	fd, err := openDoor(home)
	if err != nil {
		return Address{}, err
	}
	at, err := greet(ctx, fd, home)
	if err != nil {
		return Address{}, errors.Join(err, syscall.Close(fd))
	}
	return at, nil
}

func greet(ctx context.Context, door int, home string) (Address, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	seen := filepath.Join(home, unique("guest"))
	if _, err := syscall.Write(door, []byte(seen+"\n")); err != nil {
		return Address{}, err
	}
	if !poll(ctx, func() bool { return os.Remove(seen) == nil }) {
		return Address{}, errors.New("nobody looks after the server")
	}
	raw, err := os.ReadFile(filepath.Join(home, "data", "postmaster.pid"))
	if err != nil {
		return Address{}, err
	}
	lines := strings.Split(string(raw), "\n")
	if len(lines) < 5 {
		return Address{}, errors.New("the server is not ready")
	}
	at := onSocket(lines[4])
	return at, answers(ctx, at)
}

// unique is a name that no other process and no earlier life uses: an ending
// nanny may still write its own.
func unique(what string) string {
	return fmt.Sprintf("%s-%d-%d", what, os.Getpid(), time.Now().UnixNano())
}

// runShared starts the server under its nanny. Until this process has joined
// it holds the pipe itself, so that its death ends the server then too.
func (c cluster) runShared(ctx context.Context) error {
	hold, err := c.makeDoor()
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(hold) }()
	log, err := c.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	ended := filepath.Join(c.home, unique("ended"))
	cmd := c.command(ctx, c.home, "/bin/sh", append([]string{"-c", nanny, "sh", c.door(), ended}, c.serverArgs()...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return err
	}
	if err := c.await(ctx, func() bool { _, err := os.Stat(ended); return err == nil }); err != nil {
		return err
	}
	_, err = join(ctx, c.home)
	return err
}

func (c cluster) door() string { return filepath.Join(c.home, "door") }

func (c cluster) makeDoor() (int, error) {
	old, _ := filepath.Glob(filepath.Join(c.home, "[eg]*-*")) // ended-, guest-
	for _, path := range append(old, c.door()) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
	}
	if err := syscall.Mkfifo(c.door(), 0o600); err != nil {
		return 0, err
	}
	if err := os.Chown(c.door(), int(c.uid), int(c.gid)); err != nil {
		return 0, err
	}
	return syscall.Open(c.door(), syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}
