// Package localpg runs a Postgres server for development and tests: one that
// belongs to a folder, listens on a unix socket only, and runs as an
// unprivileged user even when we are root.
//
// Nothing in production imports it. A server started here outlives a launcher
// that was killed; the next Start in the same folder finds it through its
// postmaster.pid and stops it in good order before starting its own, so data
// survives any death of either process.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Options say where a server lives and what it is for.
type Options struct {
	Dir   string // the server's folder, created when absent; one Start at a time
	Bin   string // folder of postgres and initdb; "" searches, as Find says
	Cache string // where downloaded binaries are kept; "" is the user's cache folder
	Fast  bool   // for tests: no fsync, so a power cut may lose everything
}

// Server is a running Postgres that this process started.
type Server struct {
	Address
	socketDir string
	cmd       *exec.Cmd
	exited    chan struct{} // closed once cmd has been waited for
}

// Start finds or makes the data folder, ends whatever an earlier life left
// running there, starts the server and waits until it answers. The database
// weir and its owner weir_migrator exist when it returns. The context bounds
// the start only; Stop ends the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	c, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	var s *Server
	err = pastLeftovers(ctx, func(ctx context.Context) error {
		s, err = c.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.Provision(ctx, Database); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Done is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.exited }

func (s *Server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Stop ends the server and waits: open transactions are rolled back, data is
// written out. When ctx ends first the server is stopped the hard way, from
// which it recovers at the next start. Stopping twice is harmless.
func (s *Server) Stop(ctx context.Context) error {
	err := shutDown(ctx, s.cmd.Process, s.exited)
	if filepath.Dir(s.socketDir) == shortTemp {
		err = errors.Join(err, os.RemoveAll(s.socketDir))
	}
	return err
}

func shutDown(ctx context.Context, p *os.Process, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_ = p.Signal(syscall.SIGINT)
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGQUIT)
	select {
	case <-gone:
		return nil
	case <-time.After(5 * time.Second):
		return fmt.Errorf("postgres (process %d) does not stop", p.Pid)
	}
}
