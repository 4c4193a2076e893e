package verdict

import (
	"fmt"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
)

// Limit is one limit with its figures, as answers show it.
type Limit struct {
	ID        string     `json:"id" description:"lim_… of the limit" example:"lim_01kb0000000000000000000000"`
	Name      string     `json:"name" description:"What it counts, in words" example:"tokens per minute"`
	Scope     string     `json:"scope" description:"Whose limit it is" example:"customer"`
	Dimension string     `json:"dimension" example:"tokens"`
	Window    string     `json:"window" example:"minute"`
	Limit     int64      `json:"limit" description:"The ceiling: the most that one call can ever take" example:"200000"`
	Used      int64      `json:"used" description:"Taken in the present window, reservations included" example:"192548"`
	Requested int64      `json:"requested" description:"What this call asked of it" example:"8218"`
	Remaining int64      `json:"remaining" description:"What the next call may still take; never below 0" example:"7452"`
	Debt      int64      `json:"debt,omitempty" description:"Settled above what there was"`
	ResetAt   *time.Time `json:"reset_at" description:"When the window ends, or a bucket is full again; null for concurrency"`
	Mode      string     `json:"mode" example:"enforce"`
}

// Of is a state as answers show it.
func Of(s limits.State) Limit {
	l := Limit{
		ID: id.Limit.Format(s.Limit.ID), Name: s.Limit.Label(), Scope: string(s.Limit.Scope.Kind),
		Dimension: string(s.Limit.Dimension), Window: string(s.Limit.Window), Limit: ceiling(&s), Used: s.Used + s.Held,
		Requested: s.Requested, Remaining: s.Remaining, Debt: s.Debt, Mode: string(s.Limit.Mode),
	}
	if !s.ResetAt.IsZero() {
		at := s.ResetAt.UTC().Truncate(time.Millisecond)
		l.ResetAt = &at
	}
	return l
}

// All is Of for the caller's own limits among states: what a customer's key
// shows never tells of the provider keys behind it.
func All(states []limits.State, withProviders bool) []Limit {
	out := make([]Limit, 0, len(states))
	for i := range states {
		k := states[i].Limit.Scope.Kind
		if withProviders || k != limits.ScopeProviderKey && k != limits.ScopePool {
			out = append(out, Of(states[i]))
		}
	}
	return out
}

// Sentence says a refusal as a person understands it: "Rate limit reached for
// gpt-4o in plan Starter on tokens per minute: limit 200000, used 192548,
// requested 8218. Try again in 230ms."
func Sentence(d limits.Decision, model string) string {
	s := d.Binding()
	if d.ProviderFull && d.TooLarge {
		return fmt.Sprintf("Request too large for %s: no provider key behind it can ever take a call of this size. Send less.", model)
	}
	if d.ProviderFull {
		return fmt.Sprintf("Every provider key for %s is at its limit right now. Try again in %s.", model, Duration(d.RetryAfter))
	}
	figures := fmt.Sprintf("limit %d, used %d, requested %d.", ceiling(&s), s.Used+s.Held, s.Requested)
	where := whose(s.Limit.Scope)
	switch {
	case s.Never && s.Limit.Amount == 0:
		return fmt.Sprintf("No call is allowed %s: the limit on %s is 0.", where, s.Limit.Label())
	case s.Never:
		return fmt.Sprintf("Request too large for %s %s on %s: %s It can never fit; send less.", model, where, s.Limit.Label(), figures)
	case s.Limit.Policy == limits.PolicyCalendar:
		return fmt.Sprintf("The cap on %s is reached for %s %s: %s It starts anew at %s.", s.Limit.Label(), model, where, figures, local(s).Format(time.RFC3339))
	}
	return fmt.Sprintf("Rate limit reached for %s %s on %s: %s Try again in %s.", model, where, s.Limit.Label(), figures, Duration(d.RetryAfter))
}

// local is the reset in the zone in which the window that ends is counted.
func local(s limits.State) time.Time {
	return s.ResetAt.In(s.Limit.ZoneAt(s.ResetAt.Add(-time.Millisecond)))
}

func whose(s limits.Scope) string {
	switch s.Kind {
	case limits.ScopeCustomer:
		return "in plan " + s.Name
	case limits.ScopeAPIKey:
		return "with API key " + s.Name
	case limits.ScopeTenant:
		return "in this account"
	case limits.ScopeEndUser:
		return "for this end user under " + s.Name
	}
	return "here"
}
