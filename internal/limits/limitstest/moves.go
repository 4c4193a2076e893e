package limitstest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// journey is a call that went out on a first key of a provider, with a second.
type journey struct {
	*bench
	plan     []limits.Limit
	keys     [2][]limits.Limit
	reserved limits.Decision
}

func (b *bench) candidates(keys ...[]limits.Limit) (list []limits.Candidate) {
	for _, k := range keys {
		list = append(list, limits.Candidate{ProviderKey: k[0].Scope.ID, Model: "m", Limits: limits.Compile(k)})
	}
	return list
}

func newJourney(t *testing.T, open Open) *journey {
	j := &journey{bench: newBench(t, open)}
	j.plan = append(j.perMinute(10, 1000), j.limit(limits.DimensionTokens, limits.WindowDay, 1000))
	for i := range j.keys {
		key := id.New()
		j.keys[i] = []limits.Limit{
			provider(key, limits.DimensionTokens, limits.WindowMinute, 300),
			provider(key, limits.DimensionRequests, limits.WindowDay, 5),
			provider(key, limits.DimensionConcurrency, limits.WindowNone, 1),
		}
	}
	j.reserved = j.ask(limits.Request{Plan: of(j.plan), Candidates: j.candidates(j.keys[0], j.keys[1]), Estimate: tokens(100)})
	return j
}

func (j *journey) move(attempt int, actual int64, keys ...[]limits.Limit) (limits.Decision, error) {
	return j.Move(context.Background(), limits.Next{
		Tenant: j.tenant, ID: j.reserved.Reservation.ID, Attempt: attempt,
		Ended: limits.Settlement{Actual: tokens(actual)}, Candidates: j.candidates(keys...), Plan: of(j.plan),
	})
}

func (j *journey) all() []limits.State {
	j.Helper()
	list := append([]limits.Limit{}, j.plan...)
	for _, k := range j.keys {
		list = append(list, k...)
	}
	return j.live(list...)
}

var moves = []guarantee{
	{"AMoveSettlesTheOldAttemptAndChargesTheNewInOneStep", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		before := j.live(j.plan...)
		d, err := j.move(0, 30, j.keys[1])
		if err != nil || !d.Admitted || d.Candidate != 0 || d.Again {
			t.Fatalf("%+v, %v", d, err)
		}
		if diff := cmp.Diff(before, j.live(j.plan...)); diff != "" {
			t.Fatalf("the plan's part has changed:\n%s", diff)
		}
		j.remaining(270, j.keys[0][0])
		j.remaining(4, j.keys[0][1])
		j.remaining(1, j.keys[0][2])
		j.remaining(200, j.keys[1][0])
		j.remaining(0, j.keys[1][2])
		o := j.settled(j.reserved.Reservation, 80)
		j.remaining(920, j.plan[1])
		j.remaining(220, j.keys[1][0])
		j.remaining(270, j.keys[0][0])
		j.remaining(1, j.keys[1][2])
		amounts := map[string]int64{}
		for _, c := range o.Charges {
			amounts[c.Ledger] += c.Amount
		}
		want := map[string]int64{j.plan[2].Ledger(""): 80, j.keys[0][1].Ledger(""): 1, j.keys[1][1].Ledger(""): 1}
		if diff := cmp.Diff(want, amounts); diff != "" {
			t.Fatal(diff)
		}
	}},
	{"WhereNoCandidateFitsTheOldAttemptStaysSettledAndTheRestAsItWas", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		blocker := j.ask(limits.Request{Candidates: j.candidates(j.keys[1]), Estimate: tokens(1)})
		before := j.live(append(j.keys[1], j.plan...)...)
		d, err := j.move(0, 0, j.keys[1])
		if err != nil || d.Admitted || !d.ProviderFull || d.RetryAfter != time.Second || len(d.Violations) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		if diff := cmp.Diff(before, j.live(append(j.keys[1], j.plan...)...)); diff != "" {
			t.Fatalf("something has changed:\n%s", diff)
		}
		j.remaining(300, j.keys[0][0])
		j.remaining(1, j.keys[0][2])
		j.settled(blocker.Reservation, 1)
		if d, err := j.move(1, 0, j.keys[1]); err != nil || !d.Admitted {
			t.Fatalf("%+v, %v", d, err)
		}
		j.cancelled(j.reserved.Reservation)
		j.remaining(1000, j.plan[1])
		j.remaining(299, j.keys[1][0])
	}},
	{"AMoveWithoutCandidatesOnlyEndsTheAttempt", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		d, err := j.move(0, 30)
		if err != nil || d.Admitted || !d.ProviderFull || d.Candidate != -1 || d.RetryAfter != 0 || d.Reservation.Moves != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		j.remaining(270, j.keys[0][0])
		j.remaining(1, j.keys[0][2])
		j.remaining(900, j.plan[1])
		if diff := cmp.Diff(d.Reservation, j.reserved.Reservation.EndAttempt(limits.Settlement{Actual: tokens(30)})); diff != "" {
			t.Fatalf("worked out, the reservation is another one:\n%s", diff)
		}
		j.settled(j.reserved.Reservation, 0)
		j.remaining(1000, j.plan[1])
		j.remaining(270, j.keys[0][0])
	}},
	{"ACallMovesWithinAKeyThatItHoldsItself", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		if d, err := j.move(0, 0, j.keys[0]); err != nil || !d.Admitted {
			t.Fatalf("its own slot is in the way: %+v, %v", d, err)
		}
		j.remaining(200, j.keys[0][0])
	}},
	{"TheSameMoveAgainChangesNothingAndAnotherIsAConflict", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		first, err := j.move(0, 30, j.keys[1])
		if err != nil {
			t.Fatal(err)
		}
		before := j.all()
		again, err := j.move(0, 30, j.keys[1])
		if err != nil || !again.Again || !again.Admitted || again.Candidate != first.Candidate {
			t.Fatalf("%+v, %v", again, err)
		}
		if diff := cmp.Diff(first.Reservation, again.Reservation); diff != "" {
			t.Fatal(diff)
		}
		for _, other := range []struct {
			attempt int
			actual  int64
		}{{0, 31}, {2, 30}, {-1, 30}} {
			_, err := j.move(other.attempt, other.actual, j.keys[1])
			wantFault(t, err, fault.Conflict, "reservation_moved")
		}
		if diff := cmp.Diff(before, j.all()); diff != "" {
			t.Fatalf("a repeated move changed a ledger:\n%s", diff)
		}
	}},
	{"NothingMovesThatHasEnded", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		j.clock.Set(j.reserved.ExpiresAt)
		_, err := j.move(0, 0, j.keys[1])
		wantFault(t, err, fault.Conflict, "reservation_expired")
		j.expired(1)
		_, err = j.move(0, 0, j.keys[1])
		wantFault(t, err, fault.Conflict, "reservation_expired")
		j.settled(j.reserved.Reservation, 100)
		before := j.all()
		_, err = j.move(0, 0, j.keys[1])
		wantFault(t, err, fault.Conflict, "reservation_settled")
		j.reserved.Reservation.ID = uuid.Max
		_, err = j.move(0, 0, j.keys[1])
		wantFault(t, err, fault.NotFound, "reservation_not_found")
		if diff := cmp.Diff(before, j.all()); diff != "" {
			t.Fatalf("changed:\n%s", diff)
		}
	}},
	{"AnExpiredJourneyStaysChargedWithItsEndedAttempts", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		if _, err := j.move(0, 30, j.keys[1]); err != nil {
			t.Fatal(err)
		}
		j.clock.Set(j.reserved.ExpiresAt)
		r := j.expired(1)[0]
		amounts := map[string]int64{}
		for _, c := range r.Charges() {
			amounts[c.Ledger] += c.Amount
		}
		want := map[string]int64{j.plan[2].Ledger(""): 100, j.keys[0][1].Ledger(""): 1, j.keys[1][1].Ledger(""): 1}
		if diff := cmp.Diff(want, amounts); diff != "" {
			t.Fatal(diff)
		}
		o := j.settled(r, 60)
		for _, c := range o.Charges {
			if want := map[string]int64{j.plan[2].Ledger(""): -40}[c.Ledger]; c.Amount != want {
				t.Fatalf("the correction charges %s %d, want %d", c.Ledger, c.Amount, want)
			}
		}
	}},
	{"SpendMovesWithItsCandidate", func(t *testing.T, open Open) {
		b := newBench(t, open)
		account := b.spend(100)
		account.Scope = limits.Scope{Kind: limits.ScopeTenant, ID: b.tenant}
		plan := of([]limits.Limit{account})
		r := b.ask(limits.Request{Plan: plan, Estimate: pico(0), Candidates: []limits.Candidate{{Model: "a", ProviderPico: 60_000_000}}}).Reservation
		b.remaining(40, account)
		d, err := b.Move(context.Background(), limits.Next{
			Tenant: b.tenant, ID: r.ID, Plan: plan, Ended: limits.Settlement{Actual: limits.Cost{ProviderPico: 10_000_000}},
			Candidates: []limits.Candidate{{Model: "b", ProviderPico: 80_000_000}},
		})
		if err != nil || !d.Admitted {
			t.Fatalf("%+v, %v", d, err)
		}
		b.remaining(10, account)
		o, err := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: limits.Cost{ProviderPico: 70_000_001}})
		if err != nil {
			t.Fatal(err)
		}
		b.remaining(19, account)
		var sum int64
		for _, c := range o.Charges {
			sum += c.Amount*1_000_000 + c.Pico
		}
		if sum != 80_000_001 {
			t.Fatalf("the books get %d pico-units, the ledger has 80,000,001", sum)
		}
	}},
	{"ARestoredJourneyHoldsWhatItHeld", func(t *testing.T, open Open) {
		j := newJourney(t, open)
		if _, err := j.move(0, 30, j.keys[1]); err != nil {
			t.Fatal(err)
		}
		d, _ := j.move(0, 30, j.keys[1])
		next := newBench(t, open)
		next.tenant, next.customer = j.tenant, j.customer
		if err := next.Restore(context.Background(), []limits.Reservation{d.Reservation}); err != nil {
			t.Fatal(err)
		}
		for _, l := range []limits.Limit{j.plan[2], j.keys[0][1], j.keys[1][1], j.keys[1][2], j.keys[0][2]} {
			if diff := cmp.Diff(j.live(l), next.live(l)); diff != "" {
				t.Fatalf("after a restart:\n%s", diff)
			}
		}
		if diff := cmp.Diff(j.settled(d.Reservation, 70).Charges, next.settled(d.Reservation, 70).Charges); diff != "" {
			t.Fatal(diff)
		}
	}},
}
