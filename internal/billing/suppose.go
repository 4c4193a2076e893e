package billing

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/usage"
)

// Supposal asks what a plan version would have done to what happened: to the
// calls that a customer, or one of its keys, made in a span and that passed.
type Supposal struct {
	Customer uuid.UUID
	Counter  uuid.UUID // of a key; zero: every key
	Version  uuid.UUID
	From, To time.Time
	Bucket   usage.Bucket
	Zone     *time.Location
}

// Supposed is the answer. Charges are for usage alone, without base fees.
type Supposed struct {
	Terms
	Calls       int64 // that passed, and were tried again
	Refused     int64 // of them, by this version
	RefusedThen int64 // calls that were refused when they were made, and are not tried
	ByLimit     []Supposing
	Buckets     []SupposedBucket
	Then        []usage.Money // what the calls were charged, by currency
	Charge      usage.Money   // what those that pass would be
}

// Supposing is one limit of the version and how many calls it would have
// refused, the first and the last of them.
type Supposing struct {
	Limit       limits.Limit
	Refused     int64
	First, Last time.Time
}

// SupposedBucket is a part of the span.
type SupposedBucket struct {
	Start, End     time.Time
	Calls, Refused int64
}

// MostSupposed is how many calls a supposal tries.
const MostSupposed = 200_000

// stampedAfter is how much earlier than it is stamped a call may have ended for the
// engine: what is given back then is given back in time.
const stampedAfter = 50 * time.Millisecond

// Suppose replays history through the limits engine, with a clock of its own:
// each call reserves what it reserved, when it did, and settles what it took when
// it ended. Only limits of the plan count; windows begin empty at From. Calls of
// test keys are left out. Invalid (too_many_calls) is a span of more than
// MostSupposed calls; NotFound a customer or version that is not the tenant's.
func (s *Service) Suppose(ctx context.Context, tenant uuid.UUID, q Supposal) (Supposed, error) {
	terms, err := s.TermsOf(ctx, tenant, q.Version)
	if err != nil {
		return Supposed{}, err
	}
	reports := usage.NewReports(s.db, s.now)
	filter := usage.Filter{Customer: q.Customer, Counter: q.Counter}
	rep, err := reports.Report(ctx, tenant, usage.Query{From: q.From, To: q.To, Bucket: q.Bucket, Filter: filter, Zone: q.Zone})
	if err != nil {
		return Supposed{}, err
	}
	out := Supposed{Terms: terms, RefusedThen: rep.Totals.Refused, Charge: usage.Money{Currency: terms.Version.Currency}}
	for _, r := range rep.Rows {
		out.Buckets = append(out.Buckets, SupposedBucket{Start: r.Start, End: r.End})
	}
	calls, err := pastCalls(ctx, reports, tenant, filter, rep.From, rep.To)
	if err != nil {
		return Supposed{}, err
	}
	return out, out.replay(ctx, tenant, q.Customer, calls)
}

// pastCall is a call that passed, with what is needed to try it again.
type pastCall struct {
	id               uuid.UUID
	model, user      string
	started, ended   time.Time
	estimate, actual limits.Cost
	charge           usage.Money
}

// pastCalls reads the calls of a span that passed, oldest first, with their
// corrections.
func pastCalls(ctx context.Context, reports *usage.Reports, tenant uuid.UUID, f usage.Filter, from, to time.Time) ([]pastCall, error) {
	var calls []pastCall
	corrections := map[uuid.UUID]usage.Event{}
	for q := (usage.RequestFilter{From: from, To: to, Filter: f, Limit: 1000}); ; {
		page, err := reports.Requests(ctx, tenant, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			switch {
			case e.Outcome == usage.Correction:
				corrections[e.Corrects] = e
			case e.Requests == 1:
				calls = append(calls, pastOf(e))
			}
		}
		if len(calls) > MostSupposed {
			return nil, fault.InvalidFields(fault.Field{Pointer: "?from", Code: "too_many_calls", Message: "More than 200,000 calls passed in this time. Choose a shorter one, or one key."})
		}
		if len(page) < q.Limit {
			break
		}
		q.After = usage.CursorOf(page[len(page)-1])
	}
	for i := range calls {
		if c, corrected := corrections[calls[i].id]; corrected {
			calls[i].correct(c)
		}
	}
	slices.SortFunc(calls, func(a, b pastCall) int { return cmp.Or(a.started.Compare(b.started), slices.Compare(a.id[:], b.id[:])) })
	return calls, nil
}

func pastOf(e usage.Event) pastCall {
	c := pastCall{
		id: e.ID, model: e.ModelAsked, user: e.EndUser, started: e.StartedAt, ended: e.EndedAt, estimate: e.Estimate,
		actual: limits.Cost{Requests: 1, Units: e.Units, Tokens: e.Tokens}, charge: usage.Money{Currency: e.Currency, Amount: e.Charge},
	}
	if c.estimate.Requests == 0 { // imported: nothing was reserved
		c.estimate = c.actual
	}
	return c
}

func (c *pastCall) correct(by usage.Event) {
	t := &c.actual.Tokens
	t.Input += by.Tokens.Input
	t.CachedInput += by.Tokens.CachedInput
	t.CacheWrite += by.Tokens.CacheWrite
	t.Output += by.Tokens.Output
	t.Reasoning += by.Tokens.Reasoning
	c.actual.Units += by.Units
	c.charge.Amount = c.charge.Amount.Add(by.Charge)
}

// running are the calls that were let through and have not ended, the next to
// end first.
type running []pastCall

func (r running) Len() int           { return len(r) }
func (r running) Less(i, j int) bool { return r[i].ended.Before(r[j].ended) }
func (r running) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *running) Push(x any)        { *r = append(*r, x.(pastCall)) } //nolint:forcetypeassert // container/heap gives back what it got
func (r *running) Pop() any {
	old := *r
	last := old[len(old)-1]
	*r = old[:len(old)-1]
	return last
}

// replay tries the calls, oldest first.
func (out *Supposed) replay(ctx context.Context, tenant, customer uuid.UUID, calls []pastCall) error {
	if len(calls) == 0 {
		return nil
	}
	now := calls[0].started
	engine := limits.NewMemory(limits.MemoryOptions{Now: func() time.Time { return now }, Started: now})
	plan := []*limits.Set{limits.Compile(out.Version.Placed(customer, out.Plan))}
	charged := usage.Sums{}
	var open running
	at := 0
	for _, c := range calls {
		for len(open) > 0 && !open[0].ended.After(c.started) {
			ended := heap.Pop(&open).(pastCall) //nolint:forcetypeassert // as above
			now = later(now, ended.ended)
			if _, err := engine.Settle(ctx, tenant, ended.id, limits.Settlement{Actual: ended.actual}); err != nil {
				return err
			}
		}
		now = later(now, c.started)
		for at+1 < len(out.Buckets) && !c.started.Before(out.Buckets[at].End) {
			at++
		}
		rates := RatesFor(out.Version.Prices, c.model)
		charge, _ := usage.Charge(rates, c.actual)
		c.estimate.ChargePico, c.actual.ChargePico = picoOf(rates, c.estimate), picoOf(rates, c.actual)
		d, err := engine.Reserve(ctx, limits.Request{
			Tenant: tenant, ID: c.id, Customer: customer, Model: c.model, EndUser: c.user, Plan: plan, Estimate: c.estimate,
			TTL: min(max(c.ended.Sub(c.started)+time.Minute, time.Minute), limits.MaxTTL), Forget: true,
		})
		if err != nil {
			return err
		}
		out.Calls++
		out.Buckets[at].Calls++
		charged.Add(usage.Sums{Charges: []usage.Money{c.charge}})
		if !d.Admitted {
			out.Refused++
			out.Buckets[at].Refused++
			out.blame(d.Binding().Limit, c.started)
			continue
		}
		out.Charge.Amount = out.Charge.Amount.Add(charge)
		c.ended = later(c.started, c.ended.Add(-stampedAfter))
		heap.Push(&open, c)
	}
	out.Then = charged.Charges
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// picoOf is a charge as the engine counts money.
func picoOf(rates []usage.Rate, c limits.Cost) int64 {
	sum, _ := usage.Charge(rates, c)
	if n := sum.Big(); n.IsInt64() {
		return min(n.Int64(), limits.MaxPico)
	}
	return limits.MaxPico
}

// blame notes which limit refused.
func (out *Supposed) blame(l limits.Limit, at time.Time) {
	i := slices.IndexFunc(out.ByLimit, func(s Supposing) bool { return s.Limit.ID == l.ID })
	if i < 0 {
		i = len(out.ByLimit)
		out.ByLimit = append(out.ByLimit, Supposing{Limit: l, First: at})
	}
	out.ByLimit[i].Refused++
	out.ByLimit[i].Last = at
}
