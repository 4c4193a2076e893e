package limits_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// TestAMoveWhoseAnswerIsLostChargesTheKeyThatIsCalled, and no other keeps a
// request that it never had.
func TestAMoveWhoseAnswerIsLostChargesTheKeyThatIsCalled(t *testing.T) {
	var link *redistest.Link
	p := newPairBy(t, 50*time.Millisecond, func(_ int, s *redistest.Server) string {
		link = s.Link() // the second's
		return link.URL()
	})
	e := p.engines[1]
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	plan := limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 1000, limits.OutageShare)})
	elsewhere := 0
	for range 40 {
		one, _ := p.keyed(4)
		two, ofTwo := p.keyed(4)
		ofTwo[0].Amount = 1 // a process by itself has no part of it
		two.Limits = limits.Compile(ofTwo)
		three, ofThree := p.keyed(4)
		var d limits.Decision
		p.await(func() string {
			var err error
			d, err = e.Reserve(t.Context(), limits.Request{
				Tenant: p.tenant, Model: "m", Plan: []*limits.Set{plan}, Candidates: []limits.Candidate{one}, Estimate: limits.Cost{Requests: 1}, Forget: true,
			})
			if err != nil || !d.Admitted || e.Out() {
				return "it is not admitted"
			}
			return ""
		})
		slow := time.AfterFunc(time.Duration(random.Int64N(int64(1500*time.Microsecond))), func() { link.Delay(80 * time.Millisecond) })
		to, err := e.Move(t.Context(), limits.Next{Tenant: p.tenant, ID: d.Reservation.ID, Plan: []*limits.Set{plan}, Candidates: []limits.Candidate{two, three}})
		slow.Stop()
		link.Delay(0)
		if err != nil || !to.Admitted {
			t.Fatalf("seed %d: %+v, %v", seed, to, err)
		}
		elsewhere += to.Candidate
		if _, err := e.Settle(t.Context(), p.tenant, d.Reservation.ID, limits.Settlement{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p.await(func() string {
			a, b, running := p.used(ofTwo[0]), p.used(ofThree[0]), p.used(ofTwo[1])+p.used(ofThree[1])
			if e.Out() || running != 0 || a != int64(1-to.Candidate) || b != int64(to.Candidate) {
				return fmt.Sprintf("seed %d: a call went to candidate %d, and %d and %d requests are counted, %d run", seed, to.Candidate, a, b, running)
			}
			return ""
		})
	}
	if elsewhere == 0 {
		t.Logf("seed %d: no answer was lost", seed)
	}
}
