package limits

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// alone is the engine of one process while Redis is out: a Memory on this
// process's share of what was left.
type alone struct {
	r     *Redis
	local *Memory
	since time.Time
	parts int64 // processes that share

	backAt    time.Time // when the process had told everything; guarded by away
	backSince int64     // µs of Redis: when it was first seen to answer again

	mu      sync.Mutex // before that of away
	ended   bool       // Redis is back
	sets    map[*Set]*Set
	amounts map[string]int64 // of this process, by the names that calendar ledgers begin with
	calls   map[uuid.UUID]*aloneCall
	order   []*aloneCall
	toldTo  int // so many of them, at least, were told
}

// aloneCall is what was admitted while Redis was out.
type aloneCall struct {
	myCall
	told bool
}

// errClosed and errShared are why a call fails while Redis is out.
var (
	errClosed = errors.New("limits: Redis is out, and a limit of the call is closed then")
	errBack   = errors.New("limits: Redis is back")
	errShared = errors.New("limits: Redis is out for longer than shares are granted")
)

// reserveAway decides a call while Redis is out, as the strictest Outage of the
// limits that it touches says: closed fails, share grants this process's part of
// what was left, open admits.
func (r *Redis) reserveAway(ctx context.Context, req *Request, cause error) (Decision, error) {
	mode := req.outage()
	if mode == OutageClosed {
		return Decision{}, out(errors.Join(errClosed, cause))
	}
	a := r.away.onItsOwn(r)
	if mode == OutageShare && r.now().Sub(a.since) >= shareFor {
		return Decision{}, out(errors.Join(errShared, cause))
	}
	return a.reserve(ctx, req)
}

func (w *away) onItsOwn(r *Redis) *alone {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone == nil {
		now := r.now()
		if w.since.IsZero() {
			w.since = now
		}
		a := &alone{r: r, since: w.since, parts: w.processes(), sets: map[*Set]*Set{}, amounts: map[string]int64{}, calls: map[uuid.UUID]*aloneCall{}}
		a.local = NewMemory(MemoryOptions{Now: r.now, Books: a, Started: now})
		a.local.left = a.left
		w.alone = a
	}
	return w.alone
}

// touched calls do for each rule that a request may touch.
func (req *Request) touched(do func(*rule)) {
	each := func(s *Set, model string) {
		if s == nil {
			return
		}
		for i := range s.rules {
			if r := &s.rules[i]; r.applies(model) {
				do(r)
			}
		}
	}
	for _, s := range req.Plan {
		each(s, req.Model)
	}
	for i := range req.Candidates {
		each(req.Candidates[i].Limits, req.Candidates[i].Model)
	}
}

// outage is the strictest mode of the limits that a request may touch.
func (req *Request) outage() Outage {
	mode := OutageOpen
	req.touched(func(r *rule) {
		switch o := r.limit.Outage; {
		case o == OutageClosed:
			mode = OutageClosed
		case o != OutageOpen && mode != OutageClosed:
			mode = OutageShare
		}
	})
	return mode
}

func (a *alone) has(id uuid.UUID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[id] != nil
}

func (a *alone) reserve(ctx context.Context, req *Request) (Decision, error) {
	d, err := a.local.Reserve(ctx, a.request(req))
	if err != nil {
		return d, err
	}
	d = a.answer(req, d)
	if d.Admitted && !req.DryRun {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ended {
			return Decision{}, errBack
		}
		c := &aloneCall{myCall: myCall{Reservation: d.Reservation, forget: req.Forget}}
		a.calls[c.ID] = c
		a.order = append(a.order, c)
	}
	return d, nil
}

// request is what the process asks itself: its part of each limit.
func (a *alone) request(req *Request) Request {
	mine := *req
	mine.MaxWait = 0
	mine.Plan = a.plan(req.Plan)
	mine.Candidates = a.candidates(req.Candidates)
	return mine
}

func (a *alone) plan(plan []*Set) []*Set {
	mine := make([]*Set, len(plan))
	for i, s := range plan {
		mine[i] = a.scaled(s)
	}
	return mine
}

func (a *alone) candidates(list []Candidate) []Candidate {
	mine := append([]Candidate(nil), list...)
	for i := range mine {
		mine[i].Limits = a.scaled(mine[i].Limits)
	}
	return mine
}

// answer tells a decision on parts of limits as one on the limits: what remains
// is what remains to this process.
func (a *alone) answer(req *Request, d Decision) Decision {
	whole := wholes{}
	fits := true
	req.touched(func(r *rule) {
		whole[r.name] = &r.limit
		fits = fits && r.cost(&req.Estimate).n <= r.ceiling
	})
	if d.TooLarge && fits {
		d.later()
	}
	for i := range d.Reservation.Holds {
		whole.replace(&d.Reservation.Holds[i].Limit)
	}
	whole.states(d.States)
	whole.states(d.Violations)
	return d
}

func (a *alone) live(ctx context.Context, tenant uuid.UUID, s *Set, model, endUser string) ([]State, error) {
	whole := wholes{}
	var parts []Limit
	mine := a.scaled(s)
	for i := range mine.rules {
		whole[mine.rules[i].name] = &s.rules[i].limit
		parts = append(parts, mine.rules[i].limit)
	}
	states, err := a.local.Live(ctx, tenant, parts, model, endUser)
	whole.states(states)
	return states, err
}

// wholes are limits by the names that they share with this process's parts.
type wholes map[string]*Limit

func (w wholes) replace(l *Limit) {
	if whole := w[l.family()]; whole != nil {
		*l = *whole
	}
}

func (w wholes) states(list []State) {
	for i := range list {
		w.replace(&list[i].Limit)
		list[i].Degraded = true
	}
}

// later makes a refusal for good one for now: the share is too small, the limit
// is not.
func (d *Decision) later() {
	const soon = 5 * time.Second
	d.TooLarge, d.RetryAfter = false, soon
	for i := range d.Violations {
		if d.Violations[i].Never {
			d.Violations[i].Never, d.Violations[i].RetryAfter = false, soon
		}
	}
}

func (a *alone) end(ctx context.Context, tenant, id uuid.UUID, as phase, s Settlement) (Outcome, error) {
	var o Outcome
	var err error
	if as == cancelled {
		o, err = a.local.Cancel(ctx, tenant, id)
	} else {
		o, err = a.local.Settle(ctx, tenant, id, s)
	}
	if err != nil || !o.First {
		return o, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.calls[id]; c != nil && c.ended == nil {
		c.ended = &pendingEnd{tenant: tenant, id: id, as: as, settlement: s, at: a.r.now()}
		if c.told {
			a.r.away.owe(*c.ended)
		}
	}
	return o, nil
}

// owe notes an outcome that Redis has to hear of; a.mu is held before w.mu.
func (w *away) owe(p pendingEnd) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, p)
}

// scaled is a set with this process's part of each amount. What is open in an
// outage has no bound.
func (a *alone) scaled(s *Set) *Set {
	if s == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if mine := a.sets[s]; mine != nil {
		return mine
	}
	list := make([]Limit, len(s.rules))
	for i := range s.rules {
		list[i] = a.part(&s.rules[i])
	}
	mine := Compile(list)
	for i := range mine.rules {
		r := &mine.rules[i]
		if a.amounts[r.name] = r.limit.Amount; r.limit.Outage == OutageOpen {
			a.amounts[r.name] = 0
		}
	}
	a.sets[s] = mine
	return mine
}

func (a *alone) part(r *rule) Limit {
	l := r.limit
	if l.Outage == OutageOpen {
		l.Burst = 0
		if l.Amount = maxBucket; r.kind == kindCalendar {
			l.Amount = maxCalendar
		}
		return l
	}
	if r.kind == kindGauge {
		if s, known := a.sight(r.id); known {
			l.Amount = max(s.left, 0)
		}
	}
	if r.kind == kindBucket {
		l.Burst = r.ceiling / a.parts
	}
	l.Amount /= a.parts
	return l
}

func (a *alone) sight(id ident) (sight, bool) {
	w := &a.r.away
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.sights[id]
	return s, known
}

// left is what a ledger of a part begins with: the part of what was left when it
// was last seen, and what has refilled since.
func (a *alone) left(r *rule, id ident) (int64, bool) {
	s, known := a.sight(id)
	if !known || r.limit.Outage == OutageOpen {
		return 0, false
	}
	left := max(s.left, 0) / a.parts
	if r.kind == kindBucket {
		elapsed := min(max(a.since.UnixMilli()-s.atMS, 0), grain)
		left = min(r.ceiling, left+elapsed*min(r.amount, r.ceiling)/grain)
	}
	return left, true
}

// prime gives a ledger that was just made so much.
func (t *tenant) prime(l ref, r *rule, left int64) {
	switch i := l.place(); r.kind {
	case kindBucket:
		b := t.buckets.at(i)
		b.level = min(b.level, left*grain)
	case kindMinute, kindRolling:
		s := t.slider(l)
		s.add(s.now, max(r.limit.Amount-left, 0))
	}
}

// freshFor is for how long nothing but what was seen is asked about a window.
const freshFor = time.Second

// CapTotals are the books of a process on its own: calendar windows in which its
// part of what was left remains. Of those that it never saw, the real books say
// what is used; of those that it did not see lately, both, whichever is more.
func (a *alone) CapTotals(ctx context.Context, tenant uuid.UUID, keys []WindowKey) ([]Total, error) {
	totals := make([]Total, len(keys))
	var asked []WindowKey
	var places []int
	unseen := false
	for i, k := range keys {
		s, known := a.sight(identify([]byte(k.Ledger)))
		amount, named := a.amount(k.Ledger) // without it, what was left tells nothing of what is used
		known = known && named && s.atMS >= k.WindowStart.UnixMilli()
		if known {
			totals[i].Amount = max(amount-s.left/a.parts, 0)
		}
		unseen = unseen || !known
		if !known || a.since.UnixMilli()-s.atMS > freshFor.Milliseconds() {
			asked, places = append(asked, k), append(places, i)
		}
	}
	if len(asked) == 0 || a.r.books == nil && !unseen {
		return totals, nil
	}
	if a.r.books == nil {
		return nil, errors.New("limits: nothing is known of a calendar window")
	}
	used, _, err := a.r.books.Read(ctx, tenant, asked)
	if err != nil && unseen {
		return nil, err
	}
	for i, u := range used {
		if amount, named := a.amount(asked[i].Ledger); amount > 0 || !named {
			totals[places[i]].Amount = max(totals[places[i]].Amount, (u.Amount+a.parts-1)/a.parts)
		}
	}
	return totals, nil
}

// amount is this process's part of the limit that a ledger belongs to, where the
// limit was told.
func (a *alone) amount(ledger string) (n int64, named bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, named = a.amounts[ledger]; named {
		return n, true
	}
	for name, n := range a.amounts {
		if len(ledger) > len(name) && ledger[:len(name)] == name {
			return n, true
		}
	}
	return 0, false
}
