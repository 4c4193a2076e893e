package web

import (
	"github.com/google/uuid"

	"weir/internal/id"
)

// class is one class of tokens: what was reserved and what was used.
type class struct {
	Name             string
	Estimate, Actual int64
}

// fact is something to be copied.
type fact struct{ Name, Value, Href string }

func (r requestPage) classes() (out []class) {
	e := r.Call.Event
	est, act := e.Estimate.Tokens, e.Tokens
	for _, c := range r.Corrections {
		act.Input, act.CachedInput, act.CacheWrite = act.Input+c.Tokens.Input, act.CachedInput+c.Tokens.CachedInput, act.CacheWrite+c.Tokens.CacheWrite
		act.Output, act.Reasoning = act.Output+c.Tokens.Output, act.Reasoning+c.Tokens.Reasoning
	}
	for _, c := range []class{
		{"Input", est.Input, act.Input},
		{"Cached input", est.CachedInput, act.CachedInput},
		{"Cache write", est.CacheWrite, act.CacheWrite},
		{"Output", est.Output, act.Output},
		{"Reasoning", est.Reasoning, act.Reasoning},
		{"Units", e.Estimate.Units, e.Units},
	} {
		if c.Estimate != 0 || c.Actual != 0 {
			out = append(out, c)
		}
	}
	return out
}

// facts are what one may need elsewhere.
func (r requestPage) facts() []fact {
	e := r.Call.Event
	out := []fact{{"Request", r.Call.Request, ""}, {"Event", id.Event.Format(e.ID), ""}}
	if !e.Outcome.Refused() {
		out = append(out, fact{"Reservation", id.Reservation.Format(e.ID), ""})
	}
	if r.May(seeCustomers) && e.Customer != uuid.Nil {
		out = append(out, fact{"Customer", id.Customer.Format(e.Customer), "/customers/" + id.Customer.Format(e.Customer)})
	}
	if r.May(seeCustomerKeys) && e.Key != uuid.Nil {
		out = append(out, fact{"API key", id.APIKey.Format(e.Key), ""})
	}
	if r.May(seeProviderKeys) && e.ProviderKey != uuid.Nil {
		out = append(out, fact{"Provider key", id.ProviderKey.Format(e.ProviderKey), "/providers/" + id.ProviderKey.Format(e.ProviderKey)})
	}
	for _, c := range r.Corrections {
		out = append(out, fact{"Correction", id.Event.Format(c.ID), ""})
	}
	return out
}

// allClasses adds up the tokens; units are of another kind.
func (r requestPage) allClasses() (sum class) {
	for _, c := range r.Classes {
		if c.Name != "Units" {
			sum.Estimate += c.Estimate
			sum.Actual += c.Actual
		}
	}
	return sum
}
