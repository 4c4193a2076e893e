package demo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/usage"
)

// walk goes through a customer's days, each with a limits engine of its own,
// whose clock is the walk's: nothing about a day depends on where the walk
// began.
type walk struct {
	line
	o        Options
	clock    time.Time
	engine   *limits.Memory
	lastUsed map[uuid.UUID]time.Time
}

func newWalk(l line, o Options) *walk {
	return &walk{line: l, o: o, lastUsed: map[uuid.UUID]time.Time{}}
}

// instance is the source that the tenant's history states.
func (w *walk) instance() uuid.UUID { return uuid.NewSHA1(w.tenant.ID, []byte("demo")) }

// moment is a call that somebody makes.
type moment struct {
	at  time.Time
	key key
}

// day is the events of one of the customer's days, as far as it has passed. All
// its draws follow from the day, so that a later run finds the same ones.
func (w *walk) day(ctx context.Context, start time.Time) ([]usage.Event, error) {
	r := random(w.o.Seed, w.tenant.Name, w.c.name, start.In(w.zone).Format(time.DateOnly))
	w.clock = start
	w.engine = limits.NewMemory(limits.MemoryOptions{Now: func() time.Time { return w.clock }, Started: start})
	var events []usage.Event
	for _, m := range w.moments(start, r) {
		draws := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		if m.at.After(w.o.Now.Add(-time.Minute)) {
			break
		}
		e, err := w.call(ctx, m, draws)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// moments are the calls of a day in order.
func (w *walk) moments(start time.Time, r *rand.Rand) (out []moment) {
	date := start.In(w.zone)
	base := w.c.perDay * (0.85 + 0.3*r.Float64())
	if wd := date.Weekday(); wd == time.Saturday || wd == time.Sunday {
		base *= w.c.weekend
	}
	end := limits.DayEnd(start, w.zone)
	for hour := start; hour.Before(end); hour = hour.Add(time.Hour) {
		calls := base * w.c.curve[hour.In(w.zone).Hour()] * (0.85 + 0.3*r.Float64())
		for range int(math.Floor(calls + r.Float64())) {
			out = append(out, moment{hour.Add(time.Duration(r.Int64N(int64(time.Hour)))), w.pick(r)})
		}
	}
	for _, k := range w.c.keys {
		out = append(out, burst(k, start, r)...)
	}
	out = slices.DeleteFunc(out, func(m moment) bool { return !m.at.Before(end) })
	slices.SortStableFunc(out, func(a, b moment) int { return a.at.Compare(b.at) })
	return out
}

func (w *walk) pick(r *rand.Rand) key {
	x := r.Float64()
	for _, k := range w.c.keys {
		if x -= k.share; x < 0 {
			return k
		}
	}
	return w.c.keys[0]
}

// burst is a batch job: some days, for some minutes, as fast as it can.
func burst(k key, start time.Time, r *rand.Rand) (out []moment) {
	chance, hour, minutes := r.Float64(), 9+r.IntN(9), 3+r.IntN(5)
	if k.burst == 0 || chance > 0.6 {
		return nil
	}
	from := start.Add(time.Duration(hour)*time.Hour + time.Duration(r.IntN(60))*time.Minute)
	for i := range k.burst * minutes {
		out = append(out, moment{from.Add(time.Duration(i)*time.Minute/time.Duration(k.burst) + time.Duration(r.Int64N(int64(200*time.Millisecond)))), k})
	}
	return out
}

// call asks the engine, and tells how the call went.
func (w *walk) call(ctx context.Context, m moment, r *rand.Rand) (usage.Event, error) {
	at := m.at.UTC().Truncate(time.Microsecond)
	w.clock = at
	k := w.keys[m.key.name]
	model := m.key.models[min(int(math.Abs(r.NormFloat64())*float64(len(m.key.models))*0.55), len(m.key.models)-1)]
	input := around(r, m.key.size, 0.6)
	most := around(r, 900, 0.3)
	e := usage.Event{
		Version: 1, ID: idAt(at, r), RequestID: idAt(at, r), Tenant: w.tenant.ID, Customer: w.sub.Customer, Subscription: w.sub.ID, PlanVersion: w.sub.PlanVersion,
		Key: k.ID, Counter: k.Counter, ModelAsked: model, Kind: "chat", Stream: r.Float64() < 0.6, StartedAt: at, EndedAt: at, LocalDay: limits.DayStart(at, w.zone),
		Currency: w.tenant.Currency, Test: k.Test, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: input, Output: most}},
		EndUser: fmt.Sprintf("u-%d", 100+r.IntN(60)),
	}
	w.lastUsed[k.ID] = at
	d, err := w.engine.Reserve(ctx, limits.Request{Tenant: w.tenant.ID, ID: e.ID, Model: model, EndUser: e.EndUser, Plan: []*limits.Set{w.plan}, Candidates: []limits.Candidate{{Model: model, Limits: w.supply[model]}}, Estimate: e.Estimate, Forget: true})
	if err != nil {
		return e, err
	}
	if !d.Admitted {
		return e.Refusing(d), nil
	}
	w.answer(&e, input, most, r)
	o, err := w.engine.Settle(ctx, w.tenant.ID, e.ID, limits.Settlement{Actual: limits.Cost{Tokens: e.Tokens}})
	if err != nil {
		return e, err
	}
	e.Charges, e.Requests = o.Charges, o.Actual.Requests
	w.price(&e)
	return e, nil
}
