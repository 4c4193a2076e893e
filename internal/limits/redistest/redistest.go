// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Server is one redis-server that keeps nothing on disk. It listens on a unix
// socket in a folder of its own, and ends with its test.
type Server struct {
	t       testing.TB
	dir     string
	args    []string
	process *exec.Cmd
}

// Start starts a server, with more settings as on its command line. It fails the
// test where no redis-server is installed.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-redis-") // t.TempDir's paths are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, args: args}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	s.Run()
	return s
}

// URL is where it listens, as REDIS_URL states it.
func (s *Server) URL() string { return "unix://" + s.Socket() }

// Socket is the path of its socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Run starts the server, again after Kill, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("redis-server is not installed: run scripts/setup.sh test, or install it (Debian, Ubuntu: apt install redis-server; macOS: brew install redis)")
	}
	s.process = exec.CommandContext(context.WithoutCancel(s.t.Context()), bin, append([]string{
		"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--logfile", filepath.Join(s.dir, "log"),
	}, s.args...)...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if c, err := rueidis.NewClient(s.options()); err == nil {
			err = c.Do(context.Background(), c.B().Ping().Build()).Error()
			c.Close()
			if err == nil {
				return
			}
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("redis-server does not answer:\n%s", log)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *Server) options() rueidis.ClientOption {
	o := rueidis.MustParseURL(s.URL())
	o.DisableCache = true
	o.ForceSingleClient = true
	return o
}

// Client is a connection of its own, closed with the test.
func (s *Server) Client() rueidis.Client {
	s.t.Helper()
	c, err := rueidis.NewClient(s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// Kill ends the server with SIGKILL: its state is gone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// Signal sends it a signal: SIGSTOP makes it hang, SIGCONT lets it go on.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Flush empties the server.
func (s *Server) Flush() { s.do("FLUSHALL") }

// ForgetScripts drops the scripts that it knows.
func (s *Server) ForgetScripts() { s.do("SCRIPT", "FLUSH") }

// Pause lets commands wait for so long.
func (s *Server) Pause(d time.Duration) {
	s.do("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), "ALL")
}

func (s *Server) do(command ...string) {
	s.t.Helper()
	c, err := rueidis.NewClient(s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do(context.Background(), c.B().Arbitrary(command...).Build()).Error(); err != nil {
		s.t.Fatal(err)
	}
}
