package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	shortTemp = "/tmp" // for sockets: a path of theirs has at most 103 bytes
	maxSocket = 103    // sun_path, on the stricter systems
)

// errLeftovers: the processes of a server that was killed are still going.
var errLeftovers = errors.New("an earlier server's processes have not ended")

// pastLeftovers runs start again, for a while, as long as that is what stops it.
func pastLeftovers(ctx context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var err error
	poll(ctx, func() bool {
		err = start(ctx)
		return !errors.Is(err, errLeftovers)
	})
	return err
}

// cluster is a data folder that is ready to be served, with nobody serving it.
type cluster struct {
	install
	account
	home      string // private folder of the account: data, run (the socket), log
	socketDir string
	fast      bool
}

func (c cluster) data() string { return filepath.Join(c.home, "data") }
func (c cluster) log() string  { return filepath.Join(c.home, "log") }

// prepare leaves a cluster that only needs to be started.
func prepare(ctx context.Context, o Options) (cluster, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return cluster{}, err
	}
	c := cluster{account: accountFor(filepath.Join(dir, "server", "data")), fast: o.Fast}
	if c.home, err = c.settle(ctx, dir, o.Fast); err != nil {
		return cluster{}, err
	}
	if c.install, err = find(ctx, o, c.account, dataMajor(c.data())); err != nil {
		return cluster{}, err
	}
	if err := endOrphan(ctx, c.data()); err != nil {
		return cluster{}, err
	}
	if err := c.initialise(ctx); err != nil {
		return cluster{}, err
	}
	c.socketDir, err = c.socketFolder()
	return c, err
}

// settle is the server's home: dir/server, or, when the account cannot get
// there because a folder above is closed to it, a folder elsewhere to which
// dir/server is then a link.
func (a account) settle(ctx context.Context, dir string, fast bool) (string, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	home := filepath.Join(dir, "server")
	if target, err := os.Readlink(home); err == nil {
		return target, a.makeFolder(target)
	}
	if err := a.makeFolder(home); err != nil {
		return "", err
	}
	if a.enters(ctx, home) {
		return home, nil
	}
	if dataMajor(filepath.Join(home, "data")) != 0 {
		return "", fmt.Errorf("user %d, whose the data in %s is, cannot get there: a folder above it is closed to others", a.uid, home)
	}
	return a.settleElsewhere(home, fast)
}

// settleElsewhere keeps data out of /var/tmp, which many systems sweep.
func (a account) settleElsewhere(home string, fast bool) (string, error) {
	base := "/var/lib/weir"
	if fast {
		base = "/var/tmp"
	} else if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	target, err := os.MkdirTemp(base, "weir-postgres-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(a.makeFolder(target), os.Remove(home), os.Symlink(target, home)); err != nil {
		return "", err
	}
	return target, nil
}

// dataMajor is the major version that made a data folder, 0 when there is none.
func dataMajor(data string) int {
	raw, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return n
}

// initialise makes the data folder, whole or not at all. initdb's own syncing
// takes seconds, file by file; one sync of the system does the same.
func (c cluster) initialise(ctx context.Context) error {
	if dataMajor(c.data()) != 0 {
		return nil
	}
	fresh := c.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	cmd := c.command(ctx, c.home, filepath.Join(c.bin, "initdb"), "--pgdata="+fresh, "--username="+Superuser,
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if !c.fast {
		syscall.Sync()
	}
	return os.Rename(fresh, c.data())
}

// socketFolder is a new folder for the socket. What an earlier life left in it
// goes: its lock file names a process that has ended, or another by now.
func (c cluster) socketFolder() (string, error) {
	dir := filepath.Join(c.home, "run")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if len(filepath.Join(dir, ".s.PGSQL.5432")) <= maxSocket {
		return dir, c.makeFolder(dir)
	}
	dir, err := os.MkdirTemp(shortTemp, "weir-pg-")
	if err != nil {
		return "", err
	}
	return dir, c.makeFolder(dir)
}

// serverArgs is the command line of the server. Settings stand there, not in
// postgresql.conf, so that a folder never keeps those of an older version.
func (c cluster) serverArgs() []string {
	set := []string{
		"listen_addresses=", "unix_socket_directories=" + c.socketDir, "unix_socket_permissions=0700", "port=5432",
		"timezone=UTC", "log_timezone=UTC", "lc_messages=C", "logging_collector=off", "log_destination=stderr",
	}
	if c.fast {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off",
			"wal_level=minimal", "max_wal_senders=0", "max_wal_size=128MB", "min_wal_size=32MB", "max_connections=400")
	}
	args := []string{filepath.Join(c.bin, "postgres"), "-D", c.data()}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

// run starts the server as our child and waits until it answers.
func (c cluster) run(ctx context.Context) (*Server, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := c.serverArgs()
	cmd := c.command(context.WithoutCancel(ctx), c.home, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{Address: onSocket(c.socketDir), socketDir: c.socketDir, cmd: cmd, exited: make(chan struct{})}
	go s.wait()
	if err := c.await(ctx, s.ended); err != nil {
		return nil, errors.Join(err, shutDown(context.WithoutCancel(ctx), cmd.Process, s.exited))
	}
	return s, nil
}

func (s *Server) wait() {
	defer close(s.exited)
	_ = s.cmd.Wait()
}

// openLog begins a new log: the last life's end is in it at the next failure,
// not years of them.
func (c cluster) openLog() (*os.File, error) {
	return os.OpenFile(c.log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
}

// await returns once the server answers, or has ended.
func (c cluster) await(ctx context.Context, ended func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	ok := poll(ctx, func() bool {
		err = answers(ctx, onSocket(c.socketDir))
		return err == nil || ended()
	})
	switch {
	case err == nil:
		return nil
	case ok:
		return c.failure()
	}
	return fmt.Errorf("postgres does not answer: %w", err)
}

// poll asks until the answer is yes (true) or ctx ends (false).
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (c cluster) failure() error {
	raw, _ := os.ReadFile(c.log())
	said := string(raw[max(0, len(raw)-2000):])
	if strings.Contains(said, "pre-existing shared memory block") {
		return fmt.Errorf("%w: %s", errLeftovers, said)
	}
	return fmt.Errorf("postgres ended at once; it said: %s", said)
}
