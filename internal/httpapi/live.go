package httpapi

import (
	"time"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/internal/verdict"
)

type liveQuery struct {
	Model    string `query:"model" description:"Only limits that a call for this model touches"`
	EndUser  string `query:"end_user" description:"Also the limits for each end user, as they stand for this one"`
	Customer string `query:"customer" description:"For management keys"`
}

type liveLimit struct {
	verdict.Limit
	NextCallAfterMS int64 `json:"next_call_after_ms" description:"Until a call of the smallest cost fits"`
}

type liveJSON struct {
	Data []liveLimit `json:"data"`
	AsOf time.Time   `json:"as_of"`

	Degraded bool `json:"degraded,omitempty" description:"What the processes share does not answer: what remains is this process's part of what it last saw"`
}

func liveLimits(s *Server, r *request, q liveQuery, _ none) (liveJSON, error) {
	if wrong := usage.CheckLabels(q.EndUser, nil); len(wrong) > 0 {
		wrong[0].Pointer = "?end_user"
		return liveJSON{}, fault.InvalidFields(wrong...)
	}
	customer, err := r.decidesFor(reservationBody{Customer: q.Customer})
	if err != nil {
		return liveJSON{}, err
	}
	contract, err := s.directory.Contract(r.ctx, r.tenant(), customer)
	if err != nil {
		return liveJSON{}, err
	}
	list := append([]limits.Limit{}, contract.Limits...)
	if r.caller.Key.Kind == tenants.ForCustomer {
		list = append(list, r.caller.Key.Limits...)
	}
	if r.caller.Key.Test {
		list = limits.TestPlan(list)
	}
	states, err := s.limits.Live(r.ctx, r.tenant(), list, q.Model, q.EndUser)
	if err != nil {
		return liveJSON{}, err
	}
	out := liveJSON{Data: []liveLimit{}, AsOf: s.now().UTC().Truncate(time.Millisecond)}
	for _, st := range states {
		out.Degraded = out.Degraded || st.Degraded
		out.Data = append(out.Data, liveLimit{Limit: verdict.Of(st), NextCallAfterMS: int64((st.NextCallAfter + time.Millisecond - 1) / time.Millisecond)})
	}
	r.echo.Response().Header().Set("Cache-Control", "no-store")
	return out, nil
}
