package limitstest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
)

// linearIn is one operation on a day's cap: a reserve of tokens, or, where
// reserve is negative, an outcome of the reservation of call.
type linearIn struct {
	call      int
	reserve   int64
	settle    int64
	cancelled bool
}

type linearOut struct {
	admitted bool // or the first outcome
	actual   int64
}

const linearCalls = 16

// linearState is what a cap may hold: what is used, what each call reserved, and
// how each ended.
type linearState struct {
	used     int64
	reserved [linearCalls]int64 // -1: not admitted
	ended    [linearCalls]bool
	actual   [linearCalls]int64
}

// oneCap is the cap as one caller alone would see it.
func oneCap(amount int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			s := linearState{}
			for i := range s.reserved {
				s.reserved[i] = -1
			}
			return s
		},
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linearState), input.(linearIn), output.(linearOut)
			if in.reserve >= 0 {
				fits := s.used+in.reserve <= amount
				if fits {
					s.used += in.reserve
					s.reserved[in.call] = in.reserve
				}
				return out.admitted == fits, s
			}
			if s.reserved[in.call] < 0 {
				return false, s // it has not been reserved yet
			}
			actual := in.settle
			if in.cancelled {
				actual = 0
			}
			first := !s.ended[in.call]
			if first {
				s.used += actual - s.reserved[in.call]
				s.ended[in.call], s.actual[in.call] = true, actual
			}
			return out.admitted == first && out.actual == s.actual[in.call], s
		},
		Equal: func(a, b any) bool { return a.(linearState) == b.(linearState) },
	}
}

// linear holds what many callers saw at once against an order in which one
// caller would have seen the same.
var linear = []guarantee{
	{"ReserveAndSettleHappenOneAfterTheOther", func(t *testing.T, open Open) {
		for round := range 20 {
			b := newBench(t, open)
			day := b.limit(limits.DimensionTokens, limits.WindowDay, 100)
			history := concurrently(b, of([]limits.Limit{day}), rand.New(rand.NewPCG(uint64(round), 7)))
			if r := porcupine.CheckOperationsTimeout(oneCap(100), history, time.Minute); r == porcupine.Illegal {
				t.Fatalf("round %d: there is no order in which one caller would have seen this: %+v", round, history)
			}
		}
	}},
}

// concurrently reserves every call from a goroutine of its own, and ends each
// from two.
func concurrently(b *bench, plan []*limits.Set, r *rand.Rand) []porcupine.Operation {
	begun := time.Now()
	calls := make([]struct {
		id      uuid.UUID
		reserve int64
		ends    [2]linearIn
	}, linearCalls)
	for i := range calls {
		calls[i].id, calls[i].reserve = id.New(), r.Int64N(40)
		for j := range calls[i].ends {
			calls[i].ends[j] = linearIn{call: i, reserve: -1, settle: r.Int64N(50), cancelled: r.IntN(4) == 0}
		}
	}
	lists := together(linearCalls, func(i int) (list []porcupine.Operation) {
		c := calls[i]
		op := porcupine.Operation{ClientId: i, Input: linearIn{call: i, reserve: c.reserve}, Call: time.Since(begun).Nanoseconds()}
		d, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, ID: c.id, Model: "m", Plan: plan, Estimate: tokens(c.reserve)})
		op.Return, op.Output = time.Since(begun).Nanoseconds(), linearOut{admitted: d.Admitted}
		if list = append(list, op); err != nil || !d.Admitted {
			return list
		}
		return append(list, together(2, func(j int) porcupine.Operation {
			in := c.ends[j]
			op := porcupine.Operation{ClientId: linearCalls*(j+1) + i, Input: in, Call: time.Since(begun).Nanoseconds()}
			var o limits.Outcome
			if in.cancelled {
				o, _ = b.Cancel(context.Background(), b.tenant, c.id)
			} else {
				o, _ = b.Settle(context.Background(), b.tenant, c.id, limits.Settlement{Actual: tokens(in.settle)})
			}
			op.Return, op.Output = time.Since(begun).Nanoseconds(), linearOut{o.First, o.Actual.Tokens.Total()}
			return op
		})...)
	})
	var history []porcupine.Operation
	for _, l := range lists {
		history = append(history, l...)
	}
	return history
}
