package limitstest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// shelf is books that count how often they are asked.
type shelf struct {
	mu     sync.Mutex
	totals map[limits.WindowKey]int64
	asked  map[limits.WindowKey]int
	err    error
}

func (s *shelf) CapTotals(_ context.Context, _ uuid.UUID, keys []limits.WindowKey) ([]limits.Total, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	totals := make([]limits.Total, len(keys))
	for i, k := range keys {
		s.asked[k]++
		totals[i].Amount = s.totals[k]
	}
	return totals, s.err
}

// restarted is a bench whose process started at Noon, after an earlier life that
// had used so much of the day.
func restarted(t *testing.T, open Open, used int64) (*bench, *shelf, limits.Limit) {
	b := &bench{TB: t, clock: NewClock(Noon), tenant: id.New(), customer: id.New()}
	copy(b.customer[:6], []byte{1, 0x8c, 0, 0, 0, 0}) // a customer of 2023
	day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
	books := &shelf{asked: map[limits.WindowKey]int{}, totals: map[limits.WindowKey]int64{
		{Ledger: day.Ledger(""), WindowStart: Noon.Add(-12 * time.Hour)}: used,
	}}
	b.Engine = open(t, Options{Now: b.clock.Now, Books: books, Started: Noon, Unclean: true, LastAlive: Noon.Add(-30 * time.Second)})
	return b, books, day
}

// lives are what holds from one life of the process to the next.
var lives = []guarantee{
	{"ASpentDayIsStillSpentAfterARestartAndIsLoadedOnce", func(t *testing.T, open Open) {
		b, books, day := restarted(t, open, 950)
		admitted := 0
		for _, d := range together(64, func(int) limits.Decision { return b.call([]limits.Limit{day}, 10) }) {
			if d.Admitted {
				admitted++
			}
		}
		if admitted != 5 {
			t.Fatalf("%d calls admitted, want 5", admitted)
		}
		b.clock.Move(12 * time.Hour)
		b.remaining(1000, day)
		if len(books.asked) != 1 || books.asked[limits.WindowKey{Ledger: day.Ledger(""), WindowStart: Noon.Add(-12 * time.Hour)}] != 1 {
			t.Fatalf("the books were asked %v", books.asked)
		}
	}},
	{"ASpentDayOfAnEndUserIsStillSpentAfterARestart", func(t *testing.T, open Open) {
		b, books, day := restarted(t, open, 0)
		day.Scope.Kind = limits.ScopeEndUser
		books.totals[limits.WindowKey{Ledger: day.LedgerOf("", "ann"), WindowStart: Noon.Add(-12 * time.Hour)}] = 950
		for user, left := range map[string]int64{"ann": 50, "bob": 1000} {
			ask := func(n int64) bool {
				return b.ask(limits.Request{Plan: of([]limits.Limit{day}), EndUser: user, Estimate: tokens(n)}).Admitted
			}
			if ask(left+1) || !ask(left) || ask(1) {
				t.Fatalf("%s has not %d left", user, left)
			}
		}
	}},
	{"AWindowThatBeganInThisLifeAsksNobody", func(t *testing.T, open Open) {
		b, books, day := restarted(t, open, 950)
		b.clock.Move(12 * time.Hour)
		b.admitted([]limits.Limit{day}, 1000)
		if len(books.asked) != 0 {
			t.Fatalf("the books were asked %v", books.asked)
		}
	}},
	{"WithoutBooksTheCallFailsAndNothingIsCharged", func(t *testing.T, open Open) {
		b, books, day := restarted(t, open, 950)
		minute := b.limit(limits.DimensionTokens, limits.WindowMinute, 1000)
		books.err = errors.New("books are closed")
		_, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, Plan: of([]limits.Limit{minute, day}), Estimate: tokens(1)})
		wantFault(t, err, fault.Unavailable, "limiter_unavailable")
		_, err = b.Live(context.Background(), b.tenant, []limits.Limit{day}, "", "")
		wantFault(t, err, fault.Unavailable, "limiter_unavailable")
		books.err = nil
		b.remaining(500, minute)
		b.remaining(50, day)
	}},
	{"AfterAnUncleanEndOldBucketsStartEmptyAndNewOnesFull", func(t *testing.T, open Open) {
		b, _, _ := restarted(t, open, 0)
		b.remaining(300, b.limit(limits.DimensionTokens, limits.WindowMinute, 600)) // 30 s since the last sign of life
		born := id.New()
		copy(born[:6], b.customer[:6])
		born[0] = 2 // long after Noon
		b.customer = born
		b.remaining(600, b.limit(limits.DimensionTokens, limits.WindowMinute, 600))
	}},
	{"RestoredReservationsHoldAndSettleAsEver", func(t *testing.T, open Open) {
		b, _, day := restarted(t, open, 100)
		minute := b.limit(limits.DimensionTokens, limits.WindowMinute, 600)
		slots := b.limit(limits.DimensionConcurrency, limits.WindowNone, 2)
		plan := []limits.Limit{minute, day, slots}
		earlier := newBench(t, open)
		earlier.tenant, earlier.customer = b.tenant, b.customer
		earlier.clock.Move(-time.Minute)
		old := []limits.Reservation{earlier.admitted(plan, 200), earlier.admitted(plan, 300)}
		for range 2 {
			if err := b.Restore(context.Background(), old); err != nil {
				t.Fatal(err)
			}
		}
		b.remaining(400, day) // 1000 − 100 in the books − 500 held
		b.remaining(0, slots)
		b.remaining(300, minute)
		if o := b.settled(old[0], 50); !o.First || o.Late || o.Charges[0].Amount != 50 {
			t.Fatalf("%+v", o)
		}
		b.remaining(550, day)
		b.remaining(1, slots)
		b.remaining(300, minute) // a younger bucket gives nothing back
		b.settled(old[1], 400)
		b.remaining(200, minute) // an overrun counts
		b.remaining(450, day)
	}},
	{"ARestoredReservationExpires", func(t *testing.T, open Open) {
		b, _, day := restarted(t, open, 100)
		slots := b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		earlier := newBench(t, open)
		earlier.tenant, earlier.customer = b.tenant, b.customer
		earlier.clock.Move(-time.Minute)
		r := earlier.admitted([]limits.Limit{day, slots}, 200)
		if err := b.Restore(context.Background(), []limits.Reservation{r}); err != nil {
			t.Fatal(err)
		}
		b.clock.Set(r.ExpiresAt)
		b.admitted([]limits.Limit{slots}, 1)
		if got := b.expired(1)[0].Charges(); len(got) != 1 || got[0].Amount != 200 {
			t.Fatalf("%+v", got)
		}
		b.remaining(700, day)
		if o := b.settled(r, 0); !o.Late || o.Charges[0].Amount != -200 {
			t.Fatalf("%+v", o)
		}
		b.remaining(900, day)
	}},
	{"ARestoredReservationOfYesterdayLeavesTodayAlone", func(t *testing.T, open Open) {
		b, _, day := restarted(t, open, 100)
		earlier := newBench(t, open)
		earlier.tenant, earlier.customer = b.tenant, b.customer
		earlier.clock.Set(Noon.Add(-12*time.Hour - time.Minute))
		d := earlier.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: tokens(200)})
		if err := b.Restore(context.Background(), []limits.Reservation{d.Reservation}); err != nil {
			t.Fatal(err)
		}
		b.settled(d.Reservation, 900)
		b.remaining(900, day)
	}},
}
