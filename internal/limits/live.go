package limits

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Live states the ledgers of the limits that apply to model, each with the wait
// of the smallest call. Without a model it leaves out those that have a ledger
// per model, without an end user those that have one per end user. It charges
// nothing. Errors are as for Reserve.
func (m *Memory) Live(ctx context.Context, tenant uuid.UUID, limits []Limit, model, endUser string) ([]State, error) {
	set := Compile(limits)
	if set.broken != nil {
		return nil, out(set.broken)
	}
	var none Cost
	for {
		w := m.begin(tenant, nil)
		w.model, w.figures = model, none.figures()
		for i := range set.rules {
			r := &set.rules[i]
			if r.shown(model, endUser) {
				w.know(r, endUser)
				w.ask(r, model, &none, false, true)
			}
		}
		w.plan = span{0, len(w.list)}
		if _, ready := w.judge(w.plan); ready {
			defer w.unlock()
			return w.lives(), nil
		}
		t, missing := w.t, slices.Clone(w.windows)
		w.unlock()
		if err := m.load(ctx, t, missing); err != nil {
			return nil, err
		}
	}
}

func (w *work) lives() []State {
	states := make([]State, len(w.list))
	for i := range w.list {
		c := &w.list[i]
		s := w.state(c)
		wait, ever := w.t.look(c, &w.at)
		s.NextCallAfter, s.Never, s.Requested, s.Refuses = wait, !ever, 0, false
		states[i] = s
	}
	return states
}
