package httpapi

import (
	"fmt"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// limitBody is a limit as requests give it.
type limitBody struct {
	Dimension string           `json:"dimension" required:"true" enum:"requests,tokens,input_tokens,output_tokens,units,concurrency,spend" example:"requests"`
	Window    string           `json:"window" required:"true" enum:"minute,day,month,rolling_day,none" example:"minute"`
	Policy    string           `json:"policy,omitempty" enum:"bucket,sliding,calendar,gauge" description:"May be left out: minute is bucket, day and month are calendar, rolling_day is sliding, none is gauge"`
	Amount    *int64           `json:"amount" required:"true" nullable:"false" minimum:"0" description:"The limit; 0 admits nothing. Spend is in millionths of the currency's unit. Leave the whole limit out for no limit" example:"500"`
	Burst     *int64           `json:"burst,omitempty" description:"A bucket's ceiling, at least the amount; absent: the amount"`
	Models    []string         `json:"models,omitempty" description:"Exact names or patterns such as gpt-4o*; absent: all models"`
	EachModel bool             `json:"each_model,omitempty" description:"One ledger for each model instead of a shared one"`
	Scope     string           `json:"scope,omitempty" enum:"end_user" description:"end_user: the limit holds for each end user that calls state, and calls that state none count as one; absent: for all of them together. Not on provider keys"`
	Weights   map[string]int64 `json:"weights,omitempty" description:"What a token class counts for, in thousandths; absent: 1000"`
	Mode      string           `json:"mode,omitempty" enum:"enforce,shadow" description:"shadow reports what it would refuse, and refuses nothing; absent: enforce"`
	Outage    string           `json:"outage,omitempty" enum:"share,closed,open" description:"What happens while the store of limits is out; absent: share"`
}

// limitJSON is a limit as answers show it.
type limitJSON struct {
	ID        string           `json:"id" example:"lim_01kb0000000000000000000000"`
	Dimension string           `json:"dimension" example:"requests"`
	Window    string           `json:"window" example:"minute"`
	Policy    string           `json:"policy" example:"bucket"`
	Amount    int64            `json:"amount" example:"500"`
	Burst     int64            `json:"burst,omitempty"`
	Models    []string         `json:"models,omitempty"`
	EachModel bool             `json:"each_model,omitempty"`
	Scope     string           `json:"scope,omitempty" enum:"end_user"`
	Weights   map[string]int64 `json:"weights,omitempty"`
	Mode      string           `json:"mode" example:"enforce"`
	Outage    string           `json:"outage" example:"share"`
}

// limitsFrom reads a list of limits; what it cannot hold it names by pointer.
// The rules of what goes with what are the engine's.
func limitsFrom(list []limitBody) ([]limits.Limit, error) {
	var out []limits.Limit
	var wrong []fault.Field
	for i, b := range list {
		if b.Amount == nil {
			wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/limits/%d/amount", i), Code: "required", Message: "A limit needs its amount."})
			continue
		}
		l := limits.Limit{
			Dimension: limits.Dimension(b.Dimension), Window: limits.Window(b.Window), Policy: limits.Policy(b.Policy), Amount: *b.Amount,
			Models: b.Models, EachModel: b.EachModel, Mode: limits.Mode(b.Mode), Outage: limits.Outage(b.Outage),
		}
		switch l.Scope.Kind = limits.ScopeKind(b.Scope); l.Scope.Kind {
		case "", limits.ScopeEndUser:
		default:
			wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/limits/%d/scope", i), Code: "not_one_of", Message: "A limit holds for each end_user; leave the scope out for all of them together."})
		}
		if b.Burst != nil {
			l.Burst = *b.Burst
			if l.Burst == 0 {
				wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/limits/%d/burst", i), Code: "out_of_range", Message: "A burst is at least the amount; leave it out for the amount itself."})
			}
		}
		for class, w := range b.Weights {
			if l.Weights == nil {
				l.Weights = map[limits.Class]int64{}
			}
			l.Weights[limits.Class(class)] = w
		}
		out = append(out, l)
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong...)
	}
	return out, nil
}

func limitsJSON(list []limits.Limit) []limitJSON {
	out := make([]limitJSON, len(list))
	for i, l := range list {
		out[i] = limitJSON{
			ID: id.Limit.Format(l.ID), Dimension: string(l.Dimension), Window: string(l.Window), Policy: string(l.Policy),
			Amount: l.Amount, Burst: l.Burst, Models: l.Models, EachModel: l.EachModel, Mode: string(l.Mode), Outage: string(l.Outage),
		}
		if l.EachEndUser() {
			out[i].Scope = string(limits.ScopeEndUser)
		}
		for class, w := range l.Weights {
			if out[i].Weights == nil {
				out[i].Weights = map[string]int64{}
			}
			out[i].Weights[string(class)] = w
		}
	}
	return out
}
