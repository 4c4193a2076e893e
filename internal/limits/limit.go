package limits

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Dimension is what a limit counts.
type Dimension string

// The dimensions.
const (
	DimensionRequests     Dimension = "requests"
	DimensionTokens       Dimension = "tokens"
	DimensionInputTokens  Dimension = "input_tokens"
	DimensionOutputTokens Dimension = "output_tokens"
	DimensionUnits        Dimension = "units"
	DimensionConcurrency  Dimension = "concurrency"
	DimensionSpend        Dimension = "spend"
)

// Window is the span of time that a limit's amount is for.
type Window string

// The windows.
const (
	WindowMinute     Window = "minute"
	WindowDay        Window = "day"
	WindowMonth      Window = "month"
	WindowRollingDay Window = "rolling_day"
	WindowNone       Window = "none"
)

// Policy is how a limit counts.
type Policy string

// The policies.
const (
	PolicyBucket   Policy = "bucket"
	PolicySliding  Policy = "sliding"
	PolicyCalendar Policy = "calendar"
	PolicyGauge    Policy = "gauge"
)

// Mode is what a limit does about a call that it has no room for.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "enforce"
	ModeShadow  Mode = "shadow"
)

// Outage is what happens to a limit while its store is out.
type Outage string

// The outage modes.
const (
	OutageShare  Outage = "share"
	OutageClosed Outage = "closed"
	OutageOpen   Outage = "open"
)

// ScopeKind is whose limit it is.
type ScopeKind string

// The kinds of scope.
const (
	ScopeTenant      ScopeKind = "tenant"
	ScopeCustomer    ScopeKind = "customer"
	ScopeAPIKey      ScopeKind = "api_key"
	ScopeClientToken ScopeKind = "client_token"
	ScopeEndUser     ScopeKind = "end_user"
	ScopeProviderKey ScopeKind = "provider_key"
	ScopePool        ScopeKind = "pool"
)

// Scope is what a limit is attached to. ID is stable: it survives rotation of a
// key, renaming, and any change of plan; of an end user, it is that of the
// customer, key or token whose limit it is. Name is for people, and no part of
// any identity.
type Scope struct {
	Kind ScopeKind `json:"kind"`
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name,omitempty"`
}

// Limit is one configured ceiling. A limit that is absent means no limit; an
// Amount of 0 is a limit that admits nothing.
type Limit struct {
	ID        uuid.UUID       `json:"id,omitzero"`
	Scope     Scope           `json:"scope,omitzero"`
	Dimension Dimension       `json:"dimension"`
	Window    Window          `json:"window"`
	Policy    Policy          `json:"policy,omitempty"`
	Amount    int64           `json:"amount"`
	Burst     int64           `json:"burst,omitempty"`      // a bucket's ceiling; 0: the amount
	Models    []string        `json:"models,omitempty"`     // patterns, * matches any run; none: every model
	EachModel bool            `json:"each_model,omitempty"` // one ledger per model instead of a shared one
	Weights   map[Class]int64 `json:"weights,omitempty"`    // thousandths; absent: 1000
	Mode      Mode            `json:"mode,omitempty"`
	Outage    Outage          `json:"outage,omitempty"`
	Zone      string          `json:"zone,omitempty"`       // IANA, calendar only; empty: UTC
	PastZones []PastZone      `json:"past_zones,omitempty"` // before Zone was asked for
}

// Default fills what a limit may leave out: the policy of its window, mode
// enforce, outage share.
func Default(l Limit) Limit {
	if l.Policy == "" {
		switch l.Window {
		case WindowMinute:
			l.Policy = PolicyBucket
		case WindowDay, WindowMonth:
			l.Policy = PolicyCalendar
		case WindowRollingDay:
			l.Policy = PolicySliding
		case WindowNone:
			l.Policy = PolicyGauge
		}
	}
	if l.Mode == "" {
		l.Mode = ModeEnforce
	}
	if l.Outage == "" {
		l.Outage = OutageShare
	}
	return l
}

// EachEndUser tells whether each end user that calls state has the whole amount.
// Calls that state none count together, as one.
func (l Limit) EachEndUser() bool { return l.Scope.Kind == ScopeEndUser }

// Ledger is the stable identity of the ledger that a call for model is charged
// to: scope, dimension, window and models, such as
// "customer:<uuid>/tokens/day/gpt-4o*". The amount, the policy, names and plan
// versions are no part of it, so changing them resets nothing. A limit for each
// end user has a ledger for each, which LedgerOf names.
func (l Limit) Ledger(model string) string {
	name := l.family()
	if l.EachModel {
		name += "#" + model
	}
	return name
}

// Same tells whether two limits of one scope count the same: one of them can stand
// in the place of the other, on the same ledger.
func (l Limit) Same(o Limit) bool { return l.family() == o.family() && l.EachModel == o.EachModel }

// Overridden is list with each of by in the place of the limit that counts the
// same, or added where there is none. Of several, the last counts.
func Overridden(list, by []Limit) []Limit {
	if len(by) == 0 {
		return list
	}
	out := slices.Clone(list)
	for _, l := range by {
		if i := slices.IndexFunc(out, l.Same); i >= 0 {
			out[i] = l
		} else {
			out = append(out, l)
		}
	}
	return out
}

// LedgerOf is the ledger of a call that states an end user. Who that is cannot
// be read from it.
func (l Limit) LedgerOf(model, endUser string) string {
	if !l.EachEndUser() {
		return l.Ledger(model)
	}
	return l.Ledger(model) + "@" + hashed(endUser)
}

// manyOf is the limit itself where each of its models or end users has a ledger.
func (l Limit) manyOf() ident {
	if !l.EachModel && !l.EachEndUser() {
		return ident{}
	}
	return identify([]byte(l.family()))
}

// family is the name that the ledgers of a limit begin with.
func (l Limit) family() string {
	var b strings.Builder
	b.Grow(96)
	b.WriteString(string(l.Scope.Kind))
	b.WriteByte(':')
	b.WriteString(l.Scope.ID.String())
	b.WriteByte('/')
	b.WriteString(string(l.Dimension))
	b.WriteByte('/')
	b.WriteString(string(l.Window))
	if len(l.Models) > 0 || l.EachModel {
		b.WriteByte('/')
		b.WriteString(l.models())
	}
	return b.String()
}

// longestModels is how long the patterns may stand in a ledger's name as they
// are, in bytes.
const longestModels = 128

// models is the set of patterns in one spelling, whatever order they came in; a
// long one by its SHA-256.
func (l Limit) models() string {
	s := strings.Join(l.Models, ",")
	if len(l.Models) > 1 {
		s = strings.Join(slices.Sorted(slices.Values(l.Models)), ",")
	}
	if len(s) > longestModels {
		sum := sha256.Sum256([]byte(s))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return s
}

// Applies tells whether a call for model is charged to this limit: no patterns,
// an equal one, or one whose * match. Case counts.
func (l Limit) Applies(model string) bool {
	if len(l.Models) == 0 {
		return true
	}
	return slices.ContainsFunc(l.Models, func(p string) bool { return matches(p, model) })
}

// matches compares greedily: after a *, the earliest place that fits each next
// piece is as good as any other.
func matches(pattern, s string) bool {
	piece, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, piece)
	if !ok {
		return false
	}
	for {
		piece, rest, starred = strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(s, piece)
		}
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
}

// Label names the limit for people: "tokens per minute", "requests per day".
func (l Limit) Label() string {
	if l.Dimension == DimensionConcurrency {
		return "concurrent requests"
	}
	name := strings.ReplaceAll(string(l.Dimension), "_", " ")
	switch l.Window {
	case WindowNone:
		return name
	case WindowRollingDay:
		return name + " per 24 hours"
	}
	return name + " per " + string(l.Window)
}

// MaxIn60s is the most that passes in any 60 seconds: of a bucket its ceiling
// and what refills in 59,999 ms, of a sliding minute its amount. For tokens,
// overruns of calls in flight come on top. ok is false for the other limits.
func (l Limit) MaxIn60s() (n int64, ok bool) {
	switch {
	case l.Policy == PolicyBucket:
		return l.ceiling() + l.Amount*(grain-1)/grain, true
	case l.Policy == PolicySliding && l.Window == WindowMinute:
		return l.Amount, true
	}
	return 0, false
}

// ceiling is the most that one call can ever be charged.
func (l Limit) ceiling() int64 {
	if l.Policy == PolicyBucket && l.Burst != 0 {
		return l.Burst
	}
	return l.Amount
}
