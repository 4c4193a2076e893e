package limits

import (
	"context"
	"errors"
	"maps"
	"math"
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

	mu      sync.Mutex // before that of away
	ended   bool       // Redis is back
	sets    map[*Set]*Set
	amounts map[string]int64 // of this process, by the names that calendar ledgers begin with
	calls   map[uuid.UUID]*aloneCall
	order   []*aloneCall
}

// aloneCall is what was admitted while Redis was out.
type aloneCall struct {
	myCall
	told bool
}

// errClosed and errShared are why a call fails while Redis is out.
var (
	errClosed = errors.New("limits: Redis is out, and a limit of the call is closed then")
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
	limits := map[string]*Limit{}
	fits := true
	req.touched(func(r *rule) {
		limits[r.name] = &r.limit
		fits = fits && r.cost(&req.Estimate).n <= r.ceiling
	})
	mine := *req
	mine.MaxWait = 0
	mine.Plan = make([]*Set, len(req.Plan))
	for i, s := range req.Plan {
		mine.Plan[i] = a.scaled(req.Tenant, s)
	}
	mine.Candidates = append([]Candidate(nil), req.Candidates...)
	for i := range mine.Candidates {
		mine.Candidates[i].Limits = a.scaled(req.Tenant, mine.Candidates[i].Limits)
	}
	d, err := a.local.Reserve(ctx, mine)
	if err != nil {
		return d, err
	}
	if d.TooLarge && fits {
		d.later()
	}
	for i := range d.Reservation.Holds {
		h := &d.Reservation.Holds[i]
		if l := limits[h.Limit.family()]; l != nil {
			h.Limit = *l
		}
	}
	if d.Admitted && !req.DryRun {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ended {
			return Decision{}, out(errOpen) // Redis came back meanwhile
		}
		c := &aloneCall{myCall: myCall{Reservation: d.Reservation, forget: req.Forget}}
		a.calls[c.ID] = c
		a.order = append(a.order, c)
	}
	return d, nil
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
		c.ended = &pendingEnd{tenant, id, as, s, a.r.now()}
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

// scaled is a set with this process's part of each amount, its ledgers at this
// process's part of what was left. What is open in an outage has no bound.
func (a *alone) scaled(tenant uuid.UUID, s *Set) *Set {
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
		a.amounts[r.name] = r.limit.Amount
		if left, known := a.left(&s.rules[i]); known && r.limit.Outage != OutageOpen && !r.named() {
			a.local.prime(tenant, r, left/a.parts)
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
		if left, known := a.left(r); known {
			l.Amount = left
		}
	}
	if r.kind == kindBucket {
		l.Burst = r.ceiling / a.parts
	}
	l.Amount /= a.parts
	return l
}

// left is what was left of the only ledger of a rule when it was last seen, and
// what has refilled since.
func (a *alone) left(r *rule) (int64, bool) {
	w := &a.r.away
	w.mu.Lock()
	s, known := w.sights[r.id]
	w.mu.Unlock()
	if known && r.kind == kindBucket {
		elapsed := min(max(a.since.UnixMilli()-s.atMS, 0), grain)
		s.left = min(r.ceiling, s.left+elapsed*min(r.amount, r.ceiling)/grain)
	}
	return max(s.left, 0), known
}

// prime makes the ledger of a rule with so much left.
func (m *Memory) prime(tenant uuid.UUID, r *rule, left int64) {
	if r.kind == kindCalendar || r.kind == kindGauge {
		return // the books tell of the one, of the other nothing is used
	}
	t := m.tenant(tenant)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.begin(m.now())
	if t.index[r.id] != 0 {
		return
	}
	l := t.fresh(r, r.id, &at)
	t.enter(l, r)
	switch i := l.place(); r.kind {
	case kindBucket:
		b := t.buckets.at(i)
		b.level = min(b.full(), left*grain)
	case kindMinute:
		s := t.minutes.at(i).slider()
		s.add(s.now, max(r.limit.Amount-left, 0))
	case kindRolling:
		s := t.rollings.at(i).slider()
		s.add(s.now, max(r.limit.Amount-left, 0))
	}
}

// CapTotals are the books of a process on its own: calendar windows in which its
// part of what was left remains. Of those that it never saw, the real books say
// what is used.
func (a *alone) CapTotals(ctx context.Context, tenant uuid.UUID, keys []WindowKey) ([]Total, error) {
	totals := make([]Total, len(keys))
	var asked []WindowKey
	var places []int
	w := &a.r.away
	w.mu.Lock()
	sights := make(map[int]int64, len(keys))
	for i, k := range keys {
		if s, known := w.sights[identify([]byte(k.Ledger))]; known && s.atMS >= k.WindowStart.UnixMilli() {
			sights[i] = s.left
		} else {
			asked, places = append(asked, k), append(places, i)
		}
	}
	w.mu.Unlock()
	for i, left := range maps.All(sights) {
		totals[i].Amount = max(a.amount(keys[i].Ledger)-left/a.parts, 0)
	}
	if len(asked) == 0 {
		return totals, nil
	}
	if a.r.books == nil {
		return nil, errors.New("limits: nothing is known of a calendar window")
	}
	used, err := a.r.books.CapTotals(ctx, tenant, asked)
	if err != nil {
		return nil, err
	}
	for i, u := range used {
		totals[places[i]].Amount = (u.Amount + a.parts - 1) / a.parts
	}
	return totals, nil
}

// amount is this process's part of the limit that a ledger belongs to.
func (a *alone) amount(ledger string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, known := a.amounts[ledger]; known {
		return n
	}
	for name, n := range a.amounts {
		if len(ledger) > len(name) && ledger[:len(name)] == name {
			return n
		}
	}
	return math.MaxInt64 / 2
}
