package limits

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// Set is one scope's limits, or several scopes', made ready for decisions:
// names, zones and weights are worked out once. It is immutable, and made to be
// kept for as long as the limits stand. It belongs to one tenant and remembers
// where its ledgers are, which any number of goroutines may use at once.
type Set struct {
	rules   []rule
	scopes  uint32 // a bit for each kind of scope
	doubled bool   // two rules may share a ledger
	spends  bool
	broken  error

	home atomic.Pointer[tenant] // of the last decision
	far  atomic.Pointer[far]    // what Redis is told of it
}

// rule is one limit of a set: what every decision reads, in as few lines of the
// processor's cache as can be, and beside it what is told of it.
type rule struct {
	kind     kind
	hint     atomic.Uint32 // where the ledger was last
	counts   counts
	plain    bool // it applies to every model, and has one ledger
	each     bool // one ledger for each model
	user     bool // one ledger for each end user
	flat     bool // no class of token is weighed, and no money counted
	shadow   bool
	provider bool  // counts what the provider charges
	id       ident // of name
	amount   int64
	ceiling  int64
	*facts
}

// facts are what few decisions need of a rule, kept apart so that rules are
// close together.
type facts struct {
	weights [len(allClasses)]int64
	set     *Set // nil: it is in none
	place   int  // in its set
	zone    *time.Location
	name    string // of the ledger, or what the names of its ledgers begin with
	others  ident  // the ledger of those beyond the bound on names
	limit   Limit
}

// counts is a dimension in a byte.
type counts uint8

const (
	countsRequests counts = iota
	countsUnits
	countsCalls
	countsTokens
	countsInput
	countsOutput
	countsCharge
	countsProvider
)

// figures are what a call costs in each dimension where no class is weighed.
type figures [countsOutput + 1]int64

func (c *Cost) figures() figures {
	t := &c.Tokens
	in, out := t.Input+t.CachedInput+t.CacheWrite, t.Output+t.Reasoning
	return figures{countsRequests: c.Requests, countsUnits: c.Units, countsCalls: 1, countsTokens: in + out, countsInput: in, countsOutput: out}
}

// named tells that the ledger depends on what a call says of itself.
func (r *rule) named() bool { return r.each || r.user }

// shown tells whether a look at a model and an end user shows the limit: without
// them, none that has a ledger for each.
func (r *rule) shown(model, endUser string) bool {
	if r.user && endUser == "" {
		return false
	}
	return model == "" && !r.each || model != "" && r.applies(model)
}

// othersSuffix follows the name of a limit in that of the ledger which all
// models or end users beyond the bound share. No model has such a name.
const othersSuffix = "#,others"

// Compile makes lists of placed limits ready. A limit that Check would have
// refused makes every decision on the set fail with limiter_unavailable: nothing
// passes on what cannot be enforced.
func Compile(lists ...[]Limit) *Set {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	s := &Set{rules: make([]rule, n)}
	i := 0
	for _, list := range lists {
		for j := range list {
			r := &s.rules[i]
			if err := r.compile(list[j]); err != nil && s.broken == nil {
				s.broken = err
			}
			r.set, r.place = s, i
			s.note(i)
			i++
		}
	}
	return s
}

func (s *Set) note(i int) {
	r := &s.rules[i]
	s.spends = s.spends || r.limit.Dimension == DimensionSpend
	s.scopes |= r.scope()
	for j := range i {
		s.doubled = s.doubled || s.rules[j].id == r.id
	}
}

// scope is the bit of its kind of scope.
func (r *rule) scope() uint32 {
	return 1 << (1 + slices.Index(scopeKinds, r.limit.Scope.Kind))
}

var scopeKinds = []ScopeKind{ScopeTenant, ScopeCustomer, ScopeAPIKey, ScopeClientToken, ScopeEndUser, ScopeProviderKey, ScopePool}

// Spends tells whether a limit of the set counts money.
func (s *Set) Spends() bool { return s != nil && s.spends }

func (r *rule) compile(l Limit) error {
	r.facts = &facts{limit: l, name: l.family()}
	r.each, r.user = l.EachModel, l.EachEndUser()
	r.id, r.others = identify([]byte(r.name)), identify([]byte(r.name+othersSuffix))
	r.plain = !r.named() && len(l.Models) == 0
	r.amount, r.ceiling, r.weights = l.Amount, l.ceiling(), l.classWeights()
	r.provider, r.shadow = l.ofProvider(), l.Mode == ModeShadow
	r.counts = countsOf(&l)
	r.flat = len(l.Weights) == 0 && r.counts <= countsOutput
	var known bool
	if r.kind, known = kinds[l.Policy][l.Window]; !known {
		return fmt.Errorf("limits: %s: no policy %q", r.name, l.Policy)
	}
	most := int64(maxBucket)
	if r.kind == kindCalendar {
		most = maxCalendar
		z, err := zone(l.Zone)
		if err != nil {
			return err
		}
		r.zone = z
	}
	if l.Amount < 0 || r.ceiling < l.Amount || r.ceiling > most || l.Mode != ModeEnforce && l.Mode != ModeShadow {
		return fmt.Errorf("limits: %s cannot be enforced", r.name)
	}
	return nil
}

// kinds is the kind of ledger that a policy keeps over a window.
var kinds = map[Policy]map[Window]kind{
	PolicyBucket:   {WindowMinute: kindBucket},
	PolicySliding:  {WindowMinute: kindMinute, WindowRollingDay: kindRolling},
	PolicyCalendar: {WindowDay: kindCalendar, WindowMonth: kindCalendar},
	PolicyGauge:    {WindowNone: kindGauge},
}

func (r *rule) applies(model string) bool {
	return len(r.limit.Models) == 0 || slices.ContainsFunc(r.limit.Models, func(p string) bool { return matches(p, model) })
}

func countsOf(l *Limit) counts {
	switch l.Dimension {
	case DimensionRequests:
		return countsRequests
	case DimensionUnits:
		return countsUnits
	case DimensionConcurrency:
		return countsCalls
	case DimensionInputTokens:
		return countsInput
	case DimensionOutputTokens:
		return countsOutput
	case DimensionSpend:
		if l.ofProvider() {
			return countsProvider
		}
		return countsCharge
	}
	return countsTokens
}

// cost is Limit.Cost and Limit.Pico.
func (r *rule) cost(c *Cost) sum {
	switch r.counts {
	case countsRequests:
		return sum{n: c.Requests}
	case countsUnits:
		return sum{n: c.Units}
	case countsCalls:
		return sum{n: 1}
	case countsCharge:
		return sum{c.ChargePico / picos, c.ChargePico % picos}
	case countsProvider:
		return sum{c.ProviderPico / picos, c.ProviderPico % picos}
	}
	t, w := &c.Tokens, &r.weights
	return sum{n: thousandths(t.Input*w[0] + t.CachedInput*w[1] + t.CacheWrite*w[2] + t.Output*w[3] + t.Reasoning*w[4])}
}

// appendName writes the name of the ledger of a call, given the hash of its end
// user.
func (r *rule) appendName(b []byte, model, user string) []byte {
	b = append(b, r.name...)
	if r.each {
		b = append(append(b, '#'), model...)
	}
	if r.user {
		b = append(append(b, '@'), user...)
	}
	return b
}

// TestPlan gives the limits of a plan ledgers of their own for test keys, so
// that trying out never uses up what is live.
func TestPlan(plan []Limit) []Limit {
	out := make([]Limit, len(plan))
	for i, l := range plan {
		l.Scope.ID = testTwin(l.Scope.ID)
		out[i] = l
	}
	return out
}

// testTwin is the id beside an id: random ids never meet it.
func testTwin(u uuid.UUID) uuid.UUID {
	u[15] ^= 1
	return u
}

// out is the answer of a limiter that cannot decide.
func out(cause error) error {
	return fault.New(fault.Unavailable, "limiter_unavailable", "The limiter cannot decide right now. Try again in a few seconds.").
		Because(cause).After(5 * time.Second)
}
