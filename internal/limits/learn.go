package limits

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// LearnedFrom is where a provider stated a limit.
type LearnedFrom string

// The places.
const (
	FromHeader LearnedFrom = "header"
	FromBody   LearnedFrom = "body"
)

// Statement is a ceiling that a provider stated with what it counts.
type Statement struct {
	Dimension Dimension
	Window    Window // minute or day
	Amount    int64
	Left      int64 // -1: not stated
	From      LearnedFrom
	Detail    string // the header or quota that stated it
}

// Learned is a limit of one model of a provider key as its provider last stated
// it. It stands beside what is configured, and never loosens that.
type Learned struct {
	Model     string
	Dimension Dimension
	Window    Window
	Amount    int64
	From      LearnedFrom
	Detail    string
	LearnedAt time.Time // when this amount was stated first
	SeenAt    time.Time // when it was stated last, to the hour
}

// restated is how old a SeenAt may be that another statement leaves alone.
const restated = time.Hour

// Learn is what statements about a model change in what is known: those that
// are new, have another amount, or were not seen for an hour. The last statement
// counts, whatever was known before, so that what is learned fades when the
// provider says otherwise. Amounts of zero and beyond what a limit can hold are
// no statements: some send them for "unknown".
func Learn(known []Learned, model string, said []Statement, at time.Time) (changed []Learned) {
	for _, s := range said {
		if s.Amount <= 0 || s.Amount > mostLearned(s.Window) {
			continue
		}
		l := Learned{model, s.Dimension, s.Window, s.Amount, s.From, s.Detail, at, at}
		i := slices.IndexFunc(known, l.sameLimit)
		if i >= 0 && known[i].Amount == l.Amount {
			if at.Sub(known[i].SeenAt) < restated {
				continue
			}
			l.LearnedAt = known[i].LearnedAt
		}
		changed = append(slices.DeleteFunc(changed, l.sameLimit), l)
	}
	return changed
}

func (l Learned) sameLimit(o Learned) bool {
	return l.Model == o.Model && l.Dimension == o.Dimension && l.Window == o.Window
}

func mostLearned(w Window) int64 {
	switch w {
	case WindowMinute:
		return maxBucket
	case WindowDay:
		return maxCalendar
	}
	return 0
}

// WithLearned is what counts for a model through a provider key: the limits that
// are configured, and of the learned ones those that are tighter than every
// configured limit that the model is charged to, or that nobody configured. The
// scope and zone are the key's.
func WithLearned(configured []Limit, learned []Learned, model string, scope Scope, zones Zones) []Limit {
	out := slices.Clone(configured)
	for _, k := range learned {
		if k.Model != model || slices.ContainsFunc(configured, k.within) {
			continue
		}
		l := k.limit(scope, zones)
		if i := slices.IndexFunc(out, func(o Limit) bool { return !o.EachModel && o.Mode != ModeShadow && o.family() == l.family() }); i >= 0 {
			out[i].Amount, out[i].Burst = min(out[i].Amount, l.Amount), min(out[i].Burst, l.Amount) // the same ledger
			continue
		}
		out = append(out, l)
	}
	return out
}

// Counts tells whether what is learned counts beside configured limits.
func (l Learned) Counts(configured []Limit) bool {
	return !slices.ContainsFunc(configured, l.within)
}

// within tells whether a configured limit is at least as tight already.
func (l Learned) within(c Limit) bool {
	return c.Mode != ModeShadow && c.Dimension == l.Dimension && c.Window == l.Window && c.Applies(l.Model) && max(c.Amount, c.Burst) <= l.Amount
}

// limit has an id that follows from what it is, so that it is the same one
// everywhere.
func (l Learned) limit(scope Scope, zones Zones) Limit {
	out := Default(Limit{Scope: scope, Dimension: l.Dimension, Window: l.Window, Amount: l.Amount, Models: []string{l.Model}, Zone: zones.Zone, PastZones: zones.Past})
	if l.Dimension == DimensionInputTokens {
		out.Weights = map[Class]int64{ClassCachedInput: 0} // those who state input tokens don't count cached ones
	}
	out.ID = uuid.NewSHA1(scope.ID, []byte(out.family()))
	return out
}
