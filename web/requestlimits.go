package web

import (
	"strings"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/web/ui"
)

// way is one thing that would have let a refused call pass.
type way struct{ What, Figure string }

// touched is a limit that the call was decided by, or charged to.
type touched struct {
	Name, Of string
	Gauge    *ui.Gauge
	Used     int64 // before the call; -1: not kept
	Asked    int64
	Limit    int64 // -1: not kept
	Tone     ui.Tone
	Verdict  string
}

// limitOwner is whose limit it is.
func (r requestPage) limitOwner(l limits.Limit) string {
	switch l.Scope.Kind {
	case limits.ScopeCustomer:
		return r.who()
	case limits.ScopeAPIKey:
		if r.Call.Key != "" {
			return "the key " + r.Call.Key
		}
		return "the key"
	case limits.ScopeTenant:
		return r.Tenant.Name
	case limits.ScopeProviderKey:
		return "the provider key"
	case limits.ScopePool:
		return "the pool of the provider key"
	case limits.ScopeEndUser:
		if r.Call.Event.EndUser != "" {
			return "the end user " + r.Call.Event.EndUser
		}
		return "calls that name no end user"
	case limits.ScopeClientToken:
	}
	return strings.ReplaceAll(string(l.Scope.Kind), "_", " ")
}

func dimensionWords(d limits.Dimension) string {
	if d == limits.DimensionConcurrency {
		return "calls at once"
	}
	return strings.ReplaceAll(string(d), "_", " ")
}

func windowNow(w limits.Window) string {
	return map[limits.Window]string{
		limits.WindowMinute: "this minute", limits.WindowDay: "today", limits.WindowMonth: "this month", limits.WindowRollingDay: "in these 24 hours", limits.WindowNone: "now",
	}[w]
}

// ways are what would have let the call pass, as the refusal's figures say.
func (r requestPage) ways(f usage.Refusal) (out []way) {
	if f.RetryAfter > 0 {
		out = append(out, way{"Waiting", ui.Wait(f.RetryAfter)})
	} else {
		out = append(out, way{"Waiting", "does not help"})
	}
	for _, l := range f.Limits {
		if l.Limit.Dimension == limits.DimensionTokens || l.Limit.Dimension == limits.DimensionOutputTokens || l.Limit.Dimension == limits.DimensionInputTokens {
			if l.Remaining > 0 {
				out = append(out, way{"A smaller call, of at most", ui.Count(l.Remaining) + " " + dimensionWords(l.Limit.Dimension)})
			}
		}
		out = append(out, way{"A higher limit, " + strings.ToLower(limitName(l.Limit)) + ", of at least", ui.Count(l.Used + l.Requested)})
	}
	return out
}

// touched are the limits that refused, with their figures then; of a call that
// passed, the calendar limits that it is charged to.
func (r requestPage) touched() (out []touched) {
	e := r.Call.Event
	if e.Refusal != nil {
		for _, l := range e.Refusal.Limits {
			ceiling := max(l.Used+l.Remaining, l.Limit.Amount)
			t := touched{
				Name: limitName(l.Limit), Of: r.limitOf(l.Limit), Used: l.Used, Asked: l.Requested, Limit: ceiling,
				Tone: ui.Bad, Verdict: "refused, over by " + ui.Count(max(1, l.Requested-l.Remaining)),
			}
			t.Gauge = &ui.Gauge{Limit: ceiling, Used: l.Used, Debt: max(0, l.Requested-l.Remaining), Shadow: l.Limit.Mode == limits.ModeShadow}
			t.Gauge.Label = ui.Count(l.Used) + " used and held of " + ui.Count(ceiling) + ", the call asked for " + ui.Count(l.Requested)
			out = append(out, t)
		}
		return out
	}
	for _, c := range e.Charges {
		name, of := r.ledgerWords(c.Ledger)
		out = append(out, touched{Name: name, Of: of, Used: -1, Asked: c.Amount, Limit: -1, Tone: ui.OK, Verdict: "charged to the day that began " + c.WindowStart.In(r.Now.Location()).Format("2 Jan, 15:04 MST")})
	}
	return out
}

func (r requestPage) limitOf(l limits.Limit) string {
	of := r.limitOwner(l)
	if l.Scope.Kind == limits.ScopeCustomer && l.Scope.Name != "" {
		of += ", plan " + l.Scope.Name
	}
	if l.Mode == limits.ModeShadow {
		of += ", shadow"
	}
	return of
}

// ledgerWords read the name of a ledger, "customer:<uuid>/tokens/day".
func (r requestPage) ledgerWords(ledger string) (name, of string) {
	parts := strings.Split(ledger, "/")
	if len(parts) < 3 {
		return ledger, ""
	}
	parts[len(parts)-1], _, _ = strings.Cut(parts[len(parts)-1], "@") // the end user, whom nobody can read there
	kind, ref, _ := strings.Cut(parts[0], ":")
	l := limits.Limit{Scope: limits.Scope{Kind: limits.ScopeKind(kind)}, Dimension: limits.Dimension(parts[1]), Window: limits.Window(parts[2])}
	of = r.limitOwner(l)
	if u, err := uuid.Parse(ref); err == nil && r.May(seeProviderKeys) && l.Scope.Kind == limits.ScopeProviderKey {
		of = r.Names.name(id.ProviderKey, u)
	}
	if len(parts) > 3 {
		of += ", models " + strings.Join(parts[3:], "/")
	}
	return limitName(l), of
}
