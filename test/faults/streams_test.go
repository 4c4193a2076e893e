package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestAHundredStreamsThatAreKilledAtOnceEndOnceEach: each is charged its prompt
// and what had been written down of it, and nothing stays held. F22 of the faults.
func TestAHundredStreamsThatAreKilledAtOnceEndOnceEach(t *testing.T) {
	s := stack.Fresh(t)
	up := upstreamtest.New(t)
	up.Choose(scriptOf)
	l := &load{t: t, s: s, world: limited(t, s, up), ledger: &ledger{}}
	var ops [100]op
	var streams sync.WaitGroup
	for i := range ops {
		o := &ops[i]
		*o = op{kind: "stream", words: 900, pause: 50}
		o.user = o.name(l.ops.Add(1))
		streams.Go(func() { o.cut = l.chat(o) })
	}
	var all time.Time
	stack.Eventually(t, time.Minute, func() string {
		if n := len(up.Calls()); n < len(ops) {
			return fmt.Sprintf("%d of %d streams run", n, len(ops))
		}
		if all.IsZero() {
			all = time.Now()
		}
		if time.Since(all) < 4*time.Second {
			return "no stream is old enough to have been written down"
		}
		return ""
	})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	streams.Wait()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	quiet(t, s)
	events := read(t, s, l.world)
	for i := range ops {
		if way := ops[i].check(t, events[ops[i].user], true); way != "cut, charged to its checkpoint" {
			t.Errorf("a stream went this way: %s", way)
		}
	}
	if len(events) != len(ops) {
		t.Errorf("%d calls are in the books", len(events))
	}
	booksBalance(t, s, l.world)
	nothingIsHeld(t, s, l.world)
}
