package web

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/web/ui"
)

// levels are the gauges of limits now. Where the limits have a ledger for each
// model, model says of which.
func (p *Pages) levels(ctx context.Context, tenant uuid.UUID, list []limits.Limit, model string, now time.Time) ([]ui.Level, error) {
	if len(list) == 0 {
		return nil, nil
	}
	states, err := p.limits.Live(ctx, tenant, list, model, "")
	out := make([]ui.Level, len(states))
	for i, s := range states {
		out[i] = levelOf(s, now)
	}
	return out, err
}

func levelOf(s limits.State, now time.Time) ui.Level {
	l := s.Limit
	g := gaugeOf(s, now)
	level := ui.Level{Name: limitName(l), Left: amountOf(l.Dimension, s.Remaining), Gauge: g}
	if len(l.Models) > 0 {
		level.Of = strings.Join(l.Models, ", ")
	}
	level.Detail = used(s)
	if z := l.ZoneAt(now); l.Policy == limits.PolicyCalendar && z.String() != now.Location().String() && !s.WindowStart.IsZero() {
		level.Detail += " since " + ui.Instant(s.WindowStart.In(z), now) // not the day that other figures here are of
	}
	switch {
	case l.Amount == 0:
		level.Detail = "admits nothing; waiting does not help"
	case l.Policy == limits.PolicyCalendar:
		level.Reset = "anew " + ui.Instant(s.ResetAt.In(l.ZoneAt(s.ResetAt.Add(-time.Millisecond))), now) + ", in " + ui.Span(s.ResetAt.Sub(now))
	case l.Policy == limits.PolicyGauge:
		level.Reset = "frees as calls end"
	case s.Full > 0:
		level.Reset = "full in " + ui.Span(s.Full)
	}
	return level
}

func gaugeOf(s limits.State, now time.Time) ui.Gauge {
	l := s.Limit
	ceiling := max(l.Amount, l.Burst)
	g := ui.Gauge{
		Label: limitName(l) + ": " + used(s) + ", " + amountOf(l.Dimension, s.Remaining) + " left", Limit: ceiling,
		Used: min(s.Used, ceiling), Held: s.Held, Debt: s.Debt, Shadow: l.Mode == limits.ModeShadow,
	}
	switch l.Policy {
	case limits.PolicyBucket:
		g.Refill = l.Amount / 6
	case limits.PolicyCalendar:
		if window := s.ResetAt.Sub(s.WindowStart); window > 0 && !s.WindowStart.IsZero() {
			g.Pace = min(1, max(0, float64(now.Sub(s.WindowStart))/float64(window)))
		}
	}
	return g
}

func used(s limits.State) string {
	count := func(n int64) string { return amountOf(s.Limit.Dimension, n) }
	text := count(s.Used) + " used"
	if s.Held > 0 {
		text += ", " + count(s.Held) + " held"
	}
	if s.Debt > 0 {
		text += ", " + count(s.Debt) + " in debt"
	}
	return text + " of " + count(max(s.Limit.Amount, s.Limit.Burst))
}

// limitName names a limit at the beginning of a line: "Tokens a minute".
func limitName(l limits.Limit) string {
	name := strings.ReplaceAll(string(l.Dimension), "_", " ")
	switch {
	case l.Dimension == limits.DimensionConcurrency:
		name = "requests at once"
	case l.Window == limits.WindowRollingDay:
		name += " in 24 hours"
	case l.Window != limits.WindowNone:
		name += " a " + string(l.Window)
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
