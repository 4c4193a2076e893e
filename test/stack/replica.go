package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/devstack/locate"
)

// Replica starts one more API process, bin/api, on the database and the bus of a
// running stack, with more settings ("NAME=value"). It ends with the test, or by
// KillProcess.
func (s *Stack) Replica(t testing.TB, env ...string) *Stack {
	t.Helper()
	bin, err := Bin()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := locate.Describe(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(s.Dir, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var keys struct {
		KeyRing   string `json:"key_ring"`
		EventKeys string `json:"event_keys"`
		AppKeys   string `json:"app_keys"`
	}
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	r := At(s.Dir)
	r.cmd = exec.CommandContext(context.Background(), filepath.Join(bin, "api"))
	r.cmd.Env = append(s.environ(
		"DATABASE_URL="+parts.AppURL, "NATS_URL="+parts.NATSURL, "KEY_RING="+keys.KeyRing, "EVENT_KEYS="+keys.EventKeys, "APP_KEYS="+keys.AppKeys,
		"PUBLIC_URL=http://localhost", "SPOOL_DIR="+t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "OUTBOUND_ALLOW_LOOPBACK=true", "LAME_DUCK=0s", "DRAIN=2s",
	), env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Stdout, r.cmd.Stderr = r.Log, r.Log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.gone = make(chan struct{})
	go func() {
		r.exit = r.cmd.Wait()
		close(r.gone)
	}()
	t.Cleanup(func() {
		if err := r.Stop(); err != nil && !r.killed {
			t.Error(err)
		}
		r.http.CloseIdleConnections()
	})
	Eventually(t, patience, func() string {
		addr := r.Log.readyAt()
		if r.ended() {
			t.Fatalf("the replica ended before it was ready:\n%s", r.Log.Tail())
		}
		if addr == "" {
			return "no replica is ready:\n" + r.Log.Tail()
		}
		r.setBase("http://" + addr)
		return ""
	})
	return r
}

// KillProcess ends the process alone that Replica started, with SIGKILL.
func (s *Stack) KillProcess(t testing.TB) {
	t.Helper()
	s.killed = true
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
}

// Signal sends the process that Replica started a signal.
func (s *Stack) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// readyAt is the address that a process has said to answer at; "" before.
func (l *Log) readyAt() string {
	for line := range strings.Lines(l.String()) {
		var said struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "ready" {
			return said.Addr
		}
	}
	return ""
}

// Replicas are two API processes on one Redis and the stack's Postgres and NATS,
// with more settings.
func (s *Stack) Replicas(t testing.TB, redis string, env ...string) [2]*Stack {
	t.Helper()
	var pair [2]*Stack
	for i := range pair {
		pair[i] = s.Replica(t, append([]string{"REDIS_URL=" + redis, "REDIS_BUDGET=5s", fmt.Sprint("API_PROCESSES=", len(pair))}, env...)...)
	}
	return pair
}
