package localpg

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func wantGone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if !poll(ctx, func() bool { return syscall.Kill(pid, 0) != nil }) {
		t.Error("the server is still there")
	}
}

func TestASharedServerLivesAsLongAsItsLastUserAndNoLonger(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
	server := postmaster(t, dir)
	second := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
	if !first.started || second.started || postmaster(t, dir) != server {
		t.Fatal("the second user did not get the first one's server")
	}
	mustExec(t, first.url, keep)

	first.kill()
	if n := one[int](t, second.url, "select n from kept"); n != 42 {
		t.Errorf("kept %d, want 42", n)
	}
	second.kill()
	wantGone(t, server)

	third := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
	if !third.started {
		t.Error("nobody started the server again")
	}
	if n := one[int](t, third.url, "select n from kept"); n != 42 {
		t.Errorf("kept %d, want 42", n)
	}
	server = postmaster(t, dir)
	third.kill()
	wantGone(t, server)
}

func TestUsersThatComeWhileTheLastOneGoesAlwaysGetAServer(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	server := 0
	for range 5 {
		l := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
		server = postmaster(t, dir)
		l.kill()
	}
	wantGone(t, server)
}

func TestASharedServerThatWasKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	first := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
	server := postmaster(t, dir)
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantGone(t, server)
	second := newLife(t, dir, "LOCALPG_LAUNCHER_SHARES=yes")
	if !second.started {
		t.Error("a dead server was joined")
	}
	if conn, err := pgx.Connect(t.Context(), first.url); err == nil {
		_ = conn.Close(t.Context())
	}
	server = postmaster(t, dir)
	second.kill()
	wantGone(t, server)
}
