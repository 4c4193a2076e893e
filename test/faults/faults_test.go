// Package faults kills the whole installation at random instants under load, and
// then holds the books against what the clients saw.
package faults

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

var seed = flag.Uint64("seed", 0, "of the random choices; 0: another one every time")

func TestMain(m *testing.M) {
	code := m.Run()
	stack.RemoveBin()
	os.Exit(code)
}

// TestTheBooksBalanceThroughFiveKillsOfEverything is the short form of the soak.
func TestTheBooksBalanceThroughFiveKillsOfEverything(t *testing.T) {
	killUnderLoad(t, 5)
}

// killUnderLoad runs load, ends every process with SIGKILL so many times, and
// checks, when all is quiet, that every call is in the books as it was.
func killUnderLoad(t *testing.T, kills int) {
	t.Helper()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -run '^%s$' ./test/faults -args -seed=%d", t.Name(), *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	s := stack.Fresh(t)
	up := upstreamtest.New(t)
	up.Choose(scriptOf)
	l := &load{t: t, s: s, world: limited(t, s, up), ledger: &ledger{}}
	spent := spend(t, s, up)
	l.run(*seed)
	for i := range kills {
		l.await(5 + random.IntN(150))
		if i == kills/2 {
			l.awaitCheckpoint()
		}
		began := time.Now()
		if err := kill(s, random); err != nil {
			t.Fatalf("kill %d: %v", i+1, err)
		}
		t.Logf("kill %d after %d calls; all runs again %s later", i+1, l.ledger.size(), time.Since(began).Round(time.Millisecond))
		spent.stillSpent(t, s)
		l.resume()
	}
	l.await(50)
	l.finish()
	quiet(t, s)
	spent.check(t, s)
	check(t, s, l, up)
	spoolIsClosed(t, s)
}

// kill ends everything and starts it again. Some of the kills hit a start, too.
func kill(s *stack.Stack, random *rand.Rand) error {
	if err := s.Kill(); err != nil {
		return err
	}
	if random.IntN(3) == 0 {
		if err := s.Launch(); err != nil {
			return err
		}
		<-time.After(time.Duration(random.Int64N(int64(time.Second))))
		if err := s.Kill(); err != nil {
			return err
		}
	}
	return s.Start()
}

// limited is a world with wide limits of every kind that the books know.
func limited(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) stack.World {
	t.Helper()
	wide := []stack.Limit{
		{Dimension: "requests", Window: "day", Amount: 1_000_000},
		{Dimension: "tokens", Window: "month", Amount: 1_000_000_000},
		{Dimension: "output_tokens", Window: "day", Amount: 1_000_000_000},
		{Dimension: "concurrency", Window: "none", Amount: 1000},
	}
	return s.Setup(t, stack.Options{
		Upstream: up, Zone: stack.MiddayZone(), Plan: wide, KeyLimit: wide, ProviderLimit: wide,
		Prices: []stack.Price{{Models: "*", Class: "input", MicrosPerMillion: 2_500_000}, {Models: "*", Class: "output", MicrosPerMillion: 10_000_000}, {Models: "*", Class: "request", MicrosPerMillion: 3}},
	})
}

// daily is a customer whose cap of the day is spent.
type daily struct {
	stack.World
	places, refused int64
}

func spend(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) *daily {
	t.Helper()
	d := &daily{places: 5}
	d.World = s.Setup(t, stack.Options{Upstream: up, Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: d.places}}})
	for range d.places {
		s.Want(t, 200, "POST", "/v1/chat/completions", d.Key, `{"model": "test-small", "messages": []}`)
	}
	d.stillSpent(t, s)
	return d
}

// stillSpent is what the very next call is told.
func (d *daily) stillSpent(t *testing.T, s *stack.Stack) {
	t.Helper()
	a := s.Want(t, 429, "POST", "/v1/chat/completions", d.Key, `{"model": "test-small", "messages": []}`)
	if a.Text("error.code") != "insufficient_quota" || a.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("a spent cap is refused with %s", a)
	}
	d.refused++
}

func (d *daily) check(t *testing.T, s *stack.Stack) {
	t.Helper()
	type sums struct{ Requests, Refused int64 }
	got := stack.Value[sums](t, s, `select sum(requests)::bigint, sum(refused)::bigint from usage_events where tenant_id = $1`, tenantUUID(t, d.World))
	if want := (sums{d.places, d.refused}); got != want {
		t.Errorf("a spent cap: %+v in the books, want %+v", got, want)
	}
}
