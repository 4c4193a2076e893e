package usage

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
)

// TestARefusalStormIsCountedInFull: callers that are refused as fast as they can
// ask leave a bounded number of rows, no refusal is lost, and each can be asked
// for by its request id.
func TestARefusalStormIsCountedInFull(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	const callers, each, seconds = 8, 50, 3
	one := m.call(false)
	one.Estimate.Tokens.Input = 20_000 // more than the cap ever holds
	var requests []uuid.UUID
	var mu sync.Mutex
	for range seconds {
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range each {
					c := one
					c.RequestID = id.At(m.clock.now())
					if d, err := m.meter.Admit(t.Context(), c); err != nil || d.Admitted {
						t.Errorf("%+v %v", d, err)
					}
					mu.Lock()
					requests = append(requests, c.RequestID)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		m.clock.advance(time.Second)
	}
	m.meter.Close()
	m.drain()
	rows, err := m.reports.Requests(t.Context(), m.tenant, RequestFilter{From: m.clock.now().Add(-time.Minute), To: m.clock.now().Add(time.Minute), Limit: 1000})
	must(t, err)
	var sum int64
	for _, e := range rows {
		sum += e.Refused
	}
	if sum != callers*each*seconds || len(rows) != seconds*(shownInASecond+1) {
		t.Fatalf("%d refusals in %d rows", sum, len(rows))
	}
	for _, r := range requests {
		if e, _, err := m.reports.RequestByID(t.Context(), m.tenant, r); err != nil || e.Refusal == nil || e.Refusal.Code != "request_too_large" {
			t.Fatalf("%s: %+v %v", r, e, err)
		}
	}
}

// TestStormsOfTwoKeysAreNotTakenForEachOther: each is counted for itself, and
// who asks for a call that either may have counted is told so.
func TestStormsOfTwoKeysAreNotTakenForEachOther(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	var last uuid.UUID
	for range 2 {
		c := m.call(false)
		c.Estimate.Tokens.Input = 20_000
		for range shownInASecond + 5 {
			c.RequestID = id.At(m.clock.now())
			m.admit(c)
			last = c.RequestID
		}
	}
	m.clock.advance(time.Second)
	m.meter.Sweep()
	m.drain()
	_, _, err := m.reports.RequestByID(t.Context(), m.tenant, last)
	if f := fault.Of(err); f == nil || f.Kind != fault.NotFound || f.Code != "request_counted" {
		t.Fatal(err)
	}
}

// TestARefusalThatComesLateIsStillWritten: one of a second whose count is
// written already.
func TestARefusalThatComesLateIsStillWritten(t *testing.T) {
	t.Parallel()
	var s storms
	tenant, at := id.New(), time.Now().Truncate(time.Second)
	take := func(at time.Time) int {
		e := refusal(tenant, at)
		e.Refusal = &Refusal{Code: "rate_limit_exceeded"}
		return len(s.take(&e))
	}
	for range shownInASecond {
		if take(at) != 1 {
			t.Fatal("one of the first has no event")
		}
	}
	if n := take(at); n != 0 {
		t.Fatalf("%d events for the one that is counted", n)
	}
	if n := take(at.Add(time.Second)); n != 2 {
		t.Fatalf("%d events when the next second begins", n)
	}
	if n := take(at); n != 1 {
		t.Fatalf("%d events of a straggler", n)
	}
}

// TestAStormIsBoundedAlsoAfterItsClockWasSetBack, and what was counted before is
// written, not held until the clock is there again.
func TestAStormIsBoundedAlsoAfterItsClockWasSetBack(t *testing.T) {
	t.Parallel()
	var s storms
	tenant, at := id.New(), time.Now().Truncate(time.Second)
	rows, stands := 0, int64(0)
	write := func(list []*Event) {
		for _, e := range list {
			rows, stands = rows+1, stands+e.Refused
		}
	}
	refuse := func(key uuid.UUID, at time.Time, n int) {
		for range n {
			e := refusal(tenant, at)
			e.Key, e.Refusal = key, &Refusal{Code: "rate_limit_exceeded"}
			write(s.take(&e))
		}
	}
	one, other := id.New(), id.New()
	refuse(one, at, 100)
	refuse(other, at, 100)
	back := at.Add(-time.Hour)
	for i := range 3 {
		refuse(one, back.Add(time.Duration(i)*time.Second), 1000)
	}
	write(s.over(back.Add(4*time.Second), false))
	if rows != 5*(shownInASecond+1) || stands != 3200 {
		t.Fatalf("%d refusals in %d rows", stands, rows)
	}
}
