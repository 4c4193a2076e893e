package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"weir/internal/devstack/localpg"
	"weir/internal/postgres"
)

// plant is a pipeline of real processes: two sources, two workers, a NATS server
// and a Postgres of its own.
type plant struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	goal   int // of calls, for each source
	port   int

	pg    *localpg.Server
	procs map[string]*exec.Cmd
	gone  string // the source that does not come back
	saved bool   // an older copy of NATS's store is kept
	kills map[string]int
	read  map[string]progress // of the ledgers

	caught sync.Mutex
	heard  []*nats.Msg // messages that went by, to be sent again
	again  func()      // sends them
}

func newPlant(t *testing.T, random *rand.Rand, goal int) *plant {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-p")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	p := &plant{t: t, dir: dir, random: random, goal: goal, procs: map[string]*exec.Cmd{}, kills: map[string]int{}, read: map[string]progress{}}
	t.Cleanup(p.end)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p.port = l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	p.startPostgres()
	_, err = postgres.Migrate(t.Context(), p.url(localpg.Owner))
	must(t, err)
	must(t, localpg.Do(t.Context(), p.pg.SuperURL(localpg.Database), p.pg.EnableLogins))
	for _, name := range []string{"nats", "worker1", "worker2", "source1", "source2"} {
		p.start(name)
	}
	p.listen()
	return p
}

func (p *plant) url(role string) string { return p.pg.URL(role, localpg.Database) }

func (p *plant) startPostgres() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pg, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(p.dir, "pg")})
	must(p.t, err)
	p.pg = pg
}

// start starts a process by its name.
func (p *plant) start(name string) {
	p.t.Helper()
	env := []string{"WEIR_NATS=nats://127.0.0.1:" + strconv.Itoa(p.port)}
	switch {
	case name == "nats":
		env = append(env, "WEIR_ROLE=nats", "WEIR_PORT="+strconv.Itoa(p.port), "WEIR_STORE="+p.store())
	case strings.HasPrefix(name, "worker"):
		env = append(env, "WEIR_ROLE=worker", "WEIR_DB="+p.url(localpg.Worker))
	default:
		env = append(env, "WEIR_ROLE=source", "WEIR_DB="+p.url(localpg.App), "WEIR_DIR="+filepath.Join(p.dir, name),
			"WEIR_LEDGER="+p.ledger(name), "WEIR_GOAL="+strconv.Itoa(p.goal))
		if p.gone != "" {
			env = append(env, "WEIR_ADOPT="+filepath.Join(p.dir, p.gone))
		}
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	must(p.t, cmd.Start())
	p.procs[name] = cmd
}

func (p *plant) store() string { return filepath.Join(p.dir, "nats") }

func (p *plant) ledger(name string) string { return filepath.Join(p.dir, name+".ledger") }

// kill ends one process, or Postgres, with SIGKILL, and starts it again.
func (p *plant) kill(name string) {
	p.t.Helper()
	p.kills[strings.TrimRight(name, "12")]++
	if name == "postgres" {
		p.killPostgres()
		return
	}
	p.stop(name)
	if name == "nats" {
		p.rollBack()
	}
	p.start(name)
}

func (p *plant) stop(name string) {
	cmd := p.procs[name]
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	delete(p.procs, name)
}

func (p *plant) killPostgres() {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.dir, "pg", "server", "data", "postmaster.pid"))
	must(p.t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	must(p.t, err)
	must(p.t, syscall.Kill(pid, syscall.SIGKILL))
	<-p.pg.Done()
	p.startPostgres()
}

// rollBack puts an older copy of the store into the place of a stopped server's,
// and keeps a copy of this one for the next time: what NATS took in between, it
// has lost, and what was acknowledged is there again.
func (p *plant) rollBack() {
	p.t.Helper()
	older, next := p.store()+".older", p.store()+".next"
	must(p.t, os.RemoveAll(next))
	must(p.t, os.CopyFS(next, os.DirFS(p.store())))
	if p.saved {
		must(p.t, os.RemoveAll(p.store()))
		must(p.t, os.Rename(older, p.store()))
	}
	p.saved = true
	must(p.t, os.Rename(next, older))
}

// retire ends a source for good; another one brings what it left into the books.
func (p *plant) retire(name, by string) {
	p.stop(name)
	p.gone = name
	p.kill(by)
}

// listen catches messages as they go by.
func (p *plant) listen() {
	p.t.Helper()
	nc, err := nats.Connect("nats://127.0.0.1:"+strconv.Itoa(p.port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	must(p.t, err)
	p.t.Cleanup(nc.Close)
	_, err = nc.Subscribe("usage.v1.*", func(m *nats.Msg) {
		p.caught.Lock()
		defer p.caught.Unlock()
		if m.Header.Get("Again") == "" {
			p.heard = append(p.heard, m)
			p.heard = p.heard[max(0, len(p.heard)-200):]
		}
	})
	must(p.t, err)
	p.again = func() { p.repeat(nc) }
}

// repeat sends what was heard once more, in any order, past the duplicate window.
func (p *plant) repeat(nc *nats.Conn) {
	p.caught.Lock()
	heard := append([]*nats.Msg(nil), p.heard...)
	p.caught.Unlock()
	p.random.Shuffle(len(heard), func(i, j int) { heard[i], heard[j] = heard[j], heard[i] })
	for _, m := range heard {
		c := nats.NewMsg(m.Subject)
		c.Data = m.Data
		for k, v := range m.Header {
			c.Header[k] = v
		}
		c.Header.Set(nats.MsgIdHdr, fmt.Sprint("again ", p.random.Uint64()))
		c.Header.Set("Again", "1")
		_ = nc.PublishMsg(c) // a server that is out loses it, as it may
	}
}

func (p *plant) end() {
	for name := range p.procs {
		p.stop(name)
	}
	if p.pg != nil {
		if err := p.pg.Stop(context.Background()); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Error(err)
		}
	}
	_ = os.RemoveAll(p.dir)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
