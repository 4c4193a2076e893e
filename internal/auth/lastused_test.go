package auth_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"weir/internal/auth"
)

func TestTheLastUseOfAKeyIsWrittenOnceAMinuteAtTheMost(t *testing.T) {
	f := newFixture(t)
	used := auth.NewLastUsed(f.tenants, slog.New(slog.NewTextHandler(io.Discard, nil)), f.clock.now)
	caller := try(f.directory.Caller(t.Context(), f.made.ManagementKey.Secret, "192.0.2.1"))(t)
	begun, conn := f.clock.now(), f.super()
	wants := func(after time.Duration, why string) {
		t.Helper()
		used.Note(caller)
		used.Flush(t.Context())
		at := rowsOf[*time.Time](t, conn, "select last_used_at from api_keys where api_key_id = $1", caller.Key.ID)[0]
		if at == nil || at.Sub(begun).Round(time.Millisecond) != after {
			t.Errorf("%s: written is %v, want %s after %v", why, at, after, begun)
		}
	}
	wants(0, "the first use")
	f.clock.advance(59 * time.Second)
	wants(0, "within the minute")
	f.clock.advance(time.Second)
	wants(time.Minute, "after it")
	f.clock.advance(time.Minute)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	used.Note(caller)
	used.Flush(over)
	wants(2*time.Minute, "the next use after one that could not be written")
	f.clock.advance(time.Minute)
	lock := try(conn.Begin(t.Context()))(t)
	_ = try(lock.Exec(t.Context(), "select from api_keys where api_key_id = $1 for update", caller.Key.ID))(t)
	used.Note(caller)
	used.Flush(t.Context()) // waits for nobody
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Minute)
	wants(4*time.Minute, "after somebody changed the key")
}

// BenchmarkLastUsed is what a minute of uses of so many keys costs: twelve
// flushes.
func BenchmarkLastUsed(b *testing.B) {
	const n = 100_000
	r := newReplicas(b)
	used := auth.NewLastUsed(r.tenants, slog.New(slog.NewTextHandler(io.Discard, nil)), r.clock.now)
	callers := make([]auth.Caller, 0, n)
	for _, s := range r.addKeys(n) {
		callers = append(callers, try(r.two[0].Caller(b.Context(), s, ""))(b))
	}
	for b.Loop() {
		for range 12 {
			for _, c := range callers {
				used.Note(c)
			}
			used.Flush(b.Context())
			r.clock.advance(5 * time.Second)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/60, "ms/s")
}
