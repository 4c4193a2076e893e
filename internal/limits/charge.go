package limits

import (
	"fmt"
	"time"
)

// charge is what one call asks of one ledger.
type charge struct {
	limit     *Limit
	key       string
	zone      *time.Location // calendar only
	cost      int64
	candidate bool

	ledger ledger // once drawn
	kept   bool   // false: made for this call, not stored
}

// charges are what a call for model asks of the limits that apply to it. Where
// two limits of one call share a ledger, the smaller stands for both. An error
// means a limit that Check would have refused: nothing may pass on it.
func charges(limits []Limit, model string, cost Cost, candidate bool) ([]charge, error) {
	list := make([]charge, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		if !l.Applies(model) {
			continue
		}
		c, err := newCharge(l, model)
		if err != nil {
			return nil, err
		}
		c.cost, c.candidate = l.Cost(cost), candidate
		list = tightest(list, c)
	}
	return list, nil
}

// looks are the charges of no call at all, to look at ledgers with. Without a
// model they leave out the limits that have a ledger per model.
func looks(limits []Limit, model string) ([]charge, error) {
	if model != "" {
		return charges(limits, model, Cost{}, false)
	}
	list := make([]charge, 0, len(limits))
	for i := range limits {
		if limits[i].EachModel {
			continue
		}
		c, err := newCharge(&limits[i], "")
		if err != nil {
			return nil, err
		}
		list = tightest(list, c)
	}
	return list, nil
}

func newCharge(l *Limit, model string) (charge, error) {
	c := charge{limit: l, key: l.Ledger(model)}
	if l.Amount < 0 || l.ceiling() < l.Amount || l.ceiling() > maxCalendar || l.Mode == ModeShadow {
		return c, out(fmt.Errorf("limits: %s cannot be enforced", c.key))
	}
	switch l.Policy {
	case PolicyBucket, PolicyGauge:
		if l.ceiling() > maxBucket {
			return c, out(fmt.Errorf("limits: %s: amount out of range", c.key))
		}
	case PolicyCalendar:
		z, err := zone(l.Zone)
		if err != nil {
			return c, out(err)
		}
		c.zone = z
	default:
		return c, out(fmt.Errorf("limits: %s: policy %q is unknown", c.key, l.Policy))
	}
	return c, nil
}

func tightest(list []charge, c charge) []charge {
	for i := range list {
		if list[i].key == c.key {
			if c.limit.Amount < list[i].limit.Amount {
				list[i] = c
			}
			return list
		}
	}
	return append(list, c)
}

func (c *charge) retained() *Limit {
	l := *c.limit
	return &l
}

// draw finds the ledger of each charge, or makes one that is not stored, and
// brings it up to the instant and to the limit as it is now.
func (m *Memory) draw(t *tenant, list []charge, at instant) {
	for i := range list {
		c := &list[i]
		if k, ok := t.ledgers[c.key]; ok {
			c.ledger, c.kept = k.ledger, true
			if k.limit == nil || !k.limit.same(c.limit) {
				k.limit = c.retained()
			}
		} else {
			c.ledger, c.kept = m.fresh(c.limit, c.zone, at), false
		}
		c.ledger.touch(c.limit, at)
	}
}

func (c *charge) state(at instant) State {
	s := State{Limit: *c.limit, Ledger: c.key, Requested: c.cost}
	c.ledger.fill(&s, at)
	return s
}

// verdict is what a list of charges comes to.
type verdict struct {
	refusing []State
	wait     time.Duration
	never    bool
}

func (v verdict) fits() bool { return len(v.refusing) == 0 }

// judge checks every charge; it changes nothing.
func judge(list []charge, at instant) verdict {
	var v verdict
	for i := range list {
		wait, ever := list[i].ledger.wait(list[i].cost, at)
		if wait == 0 && ever {
			continue
		}
		s := list[i].state(at)
		s.RetryAfter, s.Never = wait, !ever
		v.refusing = append(v.refusing, s)
		v.wait = max(v.wait, wait)
		v.never = v.never || !ever
	}
	return v
}

// sooner tells whether v would pass before w.
func (v verdict) sooner(w verdict) bool {
	if v.never != w.never {
		return w.never
	}
	return v.wait < w.wait
}
