package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds a start and a stop.
const patience = 60 * time.Second

// Stack is one installation. Its methods are safe for concurrent use, but only
// one goroutine starts and ends it.
type Stack struct {
	Dir  string   // its data (WEIR_DATA)
	Log  *Log     // everything that its processes have printed
	Port string   // where to listen; "0", the default, is any free port, another one at every start
	Env  []string // more settings, "NAME=value"
	http *http.Client
	home string // to remove with the data; "": none

	cmd   *exec.Cmd
	ready chan string   // the address, once
	gone  chan struct{} // closed when cmd has ended
	exit  error         // of cmd, once gone

	killed bool // by KillProcess

	mu   sync.Mutex
	base string

	remote *Remote // nil: a stack of our own
}

// Remote says how to reach an installation that runs in the test's own process.
type Remote struct {
	BaseURL  string
	SuperURL string // of its database, past row-level security
	Create   func(ctx context.Context, name, zone string) (World, error)
}

// Of is the client of a remote installation. It can neither start nor end it.
func Of(r Remote) *Stack {
	s := At("")
	s.base, s.remote = r.BaseURL, &r
	return s
}

// New makes an installation in a folder of its own; nothing runs yet. Every
// account can enter the folder, since the database's own is another one than
// root; its path is short enough for a socket.
func New() (*Stack, error) {
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return nil, err
	}
	s := At(filepath.Join(dir, "data"))
	s.home = dir
	return s, os.Chmod(dir, 0o755)
}

// At is an installation in a folder that may have data already.
func At(dir string) *Stack {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	return &Stack{Dir: dir, Port: "0", Log: &Log{}, http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Start starts everything and waits until it answers.
func (s *Stack) Start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Await()
}

// Launch starts everything and waits for nothing. Await or Kill follows.
func (s *Stack) Launch() error {
	bin, err := Bin()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "dev"))
	cmd.Env = s.environ("PORT=" + s.Port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = s.Log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	orphaned, err := endWithUs(cmd.Process.Pid)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	s.cmd, s.gone, s.ready = cmd, make(chan struct{}), make(chan string, 1)
	s.setBase("")
	go s.follow(stdout, orphaned)
	return nil
}

// Await waits until what was launched answers.
func (s *Stack) Await() error {
	select {
	case base := <-s.ready:
		s.setBase(base)
		return nil
	case <-s.gone:
		return fmt.Errorf("the stack ended before it was ready: %w\n%s", s.exit, s.Log.Tail())
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("the stack is not ready after %s\n%s", patience, s.Log.Tail()), s.Kill())
	}
}

func (s *Stack) setBase(base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = base
}

// environ is what the processes see: never the settings of whoever runs the
// tests.
func (s *Stack) environ(more ...string) []string {
	env := []string{"WEIR_DATA=" + s.Dir}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "PG_BIN", "XDG_CACHE_HOME", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(append(env, s.Env...), more...)
}

// follow reads what the process prints until it ends.
func (s *Stack) follow(stdout io.Reader, orphaned func()) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, _ = s.Log.Write(append(lines.Bytes(), '\n'))
		if base, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			s.ready <- strings.TrimSpace(base) // once in a life
		}
	}
	s.exit = s.cmd.Wait()
	orphaned()
	close(s.gone)
}

// BaseURL is where the running stack answers; "" while none does.
func (s *Stack) BaseURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// Stop ends the stack as Ctrl-C does, and waits. An exit that is not clean is
// an error.
func (s *Stack) Stop() error {
	if s.ended() {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-s.gone:
		if s.exit != nil {
			return fmt.Errorf("the stack did not end cleanly: %w\n%s", s.exit, s.Log.Tail())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("the stack does not end within %s\n%s", patience, s.Log.Tail()), s.Kill())
	}
}

func (s *Stack) ended() bool {
	if s.cmd == nil {
		return true
	}
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// Remove ends whatever still runs and removes the data.
func (s *Stack) Remove() error {
	err := s.Kill()
	s.http.CloseIdleConnections()
	server, _ := filepath.EvalSymlinks(filepath.Join(s.Dir, "postgres", "server")) // elsewhere when a folder above is closed
	err = errors.Join(err, os.RemoveAll(server), os.RemoveAll(s.Dir))
	if s.home != "" {
		err = errors.Join(err, os.RemoveAll(s.home))
	}
	return err
}
