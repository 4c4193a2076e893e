package localpg

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The test binary plays the launcher that gets killed: it starts or shares a
// server, says where, and then does nothing until it dies.
func TestMain(m *testing.M) {
	dir := os.Getenv("LOCALPG_LAUNCHER_DIR")
	if dir == "" {
		code := m.Run()
		if home, err := initialised(); err == nil {
			_ = os.RemoveAll(filepath.Dir(home))
		}
		os.Exit(code)
	}
	if err := launcher(dir, os.Getenv("LOCALPG_LAUNCHER_SHARES") != ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func launcher(dir string, shares bool) error {
	ctx := context.Background()
	if shares {
		started := false
		at, err := Share(ctx, Options{Dir: dir, Fast: true}, func(context.Context, Address) error {
			started = true
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Printf("%t\n%s\n", started, at.SuperURL("postgres"))
	} else {
		s, err := Start(ctx, Options{Dir: dir})
		if err != nil {
			return err
		}
		fmt.Printf("true\n%s\n", s.SuperURL(Database))
	}
	select {}
}

type life struct {
	cmd     *exec.Cmd
	started bool
	url     string
}

func newLife(t *testing.T, dir string, env ...string) *life {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "LOCALPG_LAUNCHER_DIR="+dir)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &life{cmd: cmd}
	t.Cleanup(l.kill)
	lines := bufio.NewScanner(out)
	for _, into := range []func(string){func(s string) { l.started = s == "true" }, func(s string) { l.url = s }} {
		if !lines.Scan() {
			t.Fatal("the launcher died")
		}
		into(lines.Text())
	}
	return l
}

func (l *life) kill() {
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Fast = true
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func one[T any](t *testing.T, url, sql string) T {
	t.Helper()
	var v T
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "server", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(raw))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// openDir is an empty folder that everybody can reach, and short.
func openDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "localpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		poll(ctx, func() bool { return os.RemoveAll(base) == nil }) // a nanny may still be writing
	})
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	return base
}

// initialised is the home of a server that has been started once: copies of it
// save each test the second that initdb takes.
var initialised = sync.OnceValues(func() (string, error) {
	base, err := os.MkdirTemp("", "localpg-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(base, 0o755); err != nil {
		return "", err
	}
	s, err := Start(context.Background(), Options{Dir: base, Fast: true})
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "server"), s.Stop(context.Background())
})

// usedDir is an openDir in which a server has been before.
func usedDir(t *testing.T) string {
	t.Helper()
	home, err := initialised()
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	if out, err := exec.CommandContext(t.Context(), "cp", "-pRH", home, filepath.Join(dir, "server")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

const keep = "create table kept as select 42 as n"

func wantKept(t *testing.T, s *Server) {
	t.Helper()
	if n := one[int](t, s.SuperURL(Database), "select n from kept"); n != 42 {
		t.Errorf("kept %d, want 42", n)
	}
}

func TestDataOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	s := start(t, Options{Dir: dir})
	mustExec(t, s.SuperURL(Database), keep)
	stop(t, s)
	wantKept(t, start(t, Options{Dir: dir}))
}

func TestAServerWithoutFastKeepsItsWritesSafe(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s, err := Start(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if v := one[string](t, s.SuperURL(Database), "show "+setting); v != "on" {
			t.Errorf("%s is %s", setting, v)
		}
	}
}

func TestTheOwnerOfTheDatabaseIsNoSuperuser(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: usedDir(t)})
	url := s.URL(Owner, Database)
	if one[bool](t, url, "select rolsuper or rolbypassrls or rolreplication or rolcreatedb from pg_roles where rolname = current_user") {
		t.Error("the owner of the database has more rights than it needs")
	}
	if !one[bool](t, url, "select rolcreaterole from pg_roles where rolname = current_user") {
		t.Error("the owner cannot make the services' roles")
	}
	mustExec(t, url, "create table mine (n int)")
}

func TestTheServerOfAKilledLauncherIsReplacedAndItsDataKept(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	first := newLife(t, dir)
	mustExec(t, first.url, keep)
	orphan := postmaster(t, dir)
	first.kill()
	if err := syscall.Kill(orphan, 0); err != nil {
		t.Fatalf("the server died with its launcher: %v", err)
	}
	wantKept(t, start(t, Options{Dir: dir}))
	if postmaster(t, dir) == orphan {
		t.Error("the orphan still runs")
	}
}

func TestAKilledServerComesBackWithItsData(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	first := newLife(t, dir)
	mustExec(t, first.url, keep)
	connect(t, first.url) // its backend outlives the postmaster for a moment
	first.kill()
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantKept(t, start(t, Options{Dir: dir}))
}

func TestAnotherProcessWithTheOldNumberIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	s := start(t, Options{Dir: dir})
	mustExec(t, s.SuperURL(Database), keep)
	pidFile := filepath.Join(dir, "server", "data", "postmaster.pid")
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)

	a := accountFor(filepath.Dir(pidFile))
	bystander := a.command(t.Context(), "/", "/bin/sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	_, rest, _ := strings.Cut(string(raw), "\n")
	stale := fmt.Sprintf("%d\n%s", bystander.Process.Pid, rest)
	if err := os.WriteFile(pidFile, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(pidFile, int(a.uid), int(a.gid)); err != nil {
		t.Fatal(err)
	}

	wantKept(t, start(t, Options{Dir: dir}))
	if err := syscall.Kill(bystander.Process.Pid, 0); err != nil {
		t.Errorf("the bystander was hurt: %v", err)
	}
}

func TestAClosedParentFolderIsNoObstacle(t *testing.T) {
	t.Parallel()
	closed := openDir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "stack")
	s := start(t, Options{Dir: dir})
	if target, err := os.Readlink(filepath.Join(dir, "server")); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(target) })
	} else if os.Geteuid() == 0 {
		t.Error("the data is where the server's account cannot get")
	}
	mustExec(t, s.SuperURL(Database), keep)
	stop(t, s)
	wantKept(t, start(t, Options{Dir: dir}))
}

func TestALongPathIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir})
	stop(t, s)
	if _, err := os.Stat(s.socketDir); filepath.Dir(s.socketDir) != shortTemp || !os.IsNotExist(err) {
		t.Errorf("the socket's folder %s was left (%v)", s.socketDir, err)
	}
}

func TestCtrlCReachesOnlyTheLauncher(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: usedDir(t)})
	group, err := syscall.Getpgid(s.cmd.Process.Pid)
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("the server is in our process group %d (%v)", group, err)
	}
}

func TestOpenConnectionsDoNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: usedDir(t)})
	conn := connect(t, s.SuperURL(Database))
	if _, err := conn.Exec(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	stop(t, s)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	select {
	case <-s.Done():
	default:
		t.Error("a stopped server is not done")
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	stop(t, start(t, Options{Dir: dir}))
	conf := filepath.Join(dir, "server", "data", "postgresql.conf")
	if err := os.WriteFile(conf, []byte("no_such_setting = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir, Fast: true})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got %v", err)
	}
}
