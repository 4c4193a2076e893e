package limits

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// far is what Redis is told of a set, worked out once: where its ledgers are,
// and its limits for whoever settles.
type far struct {
	rules []farRule
	raw   string // its limits

	once sync.Once
	kept string
}

// definitions are its limits for many reservations to keep.
func (f *far) definitions() string {
	f.once.Do(func() { f.kept = squeezed(f.raw) })
	return f.kept
}

// farRule says where the ledgers of a rule are: a group is everything of one
// scope, of one model and one end user where the limit has a ledger for each.
type farRule struct {
	base   string // suffix of the group's key
	field  string // in the group
	counts int    // what of a call it counts (record.lua)
	last   atomic.Pointer[window]
}

func (s *Set) told() *far {
	if f := s.far.Load(); f != nil {
		return f
	}
	list := make([]Limit, len(s.rules))
	f := &far{rules: make([]farRule, len(s.rules))}
	for i := range s.rules {
		r := &s.rules[i]
		list[i] = r.limit
		to := &f.rules[i]
		to.base, to.field, to.counts = groupOf(&r.limit), fieldOf(&r.limit), r.farCounts()
	}
	raw, _ := json.Marshal(list) // plain values
	f.raw = string(raw)
	s.far.Store(f)
	return f
}

var (
	scopeLetters = map[ScopeKind]string{
		ScopeTenant: "t", ScopeCustomer: "c", ScopeAPIKey: "k", ScopeClientToken: "n", ScopeEndUser: "u", ScopeProviderKey: "p", ScopePool: "o",
	}
	dimensionLetters = map[Dimension]string{
		DimensionRequests: "r", DimensionTokens: "t", DimensionInputTokens: "i", DimensionOutputTokens: "o", DimensionUnits: "u",
		DimensionConcurrency: "c", DimensionSpend: "s",
	}
	windowLetters = map[Window]string{WindowMinute: "m", WindowDay: "d", WindowMonth: "M", WindowRollingDay: "D", WindowNone: "n"}
)

func groupOf(l *Limit) string {
	return "g" + scopeLetters[l.Scope.Kind] + base64.RawURLEncoding.EncodeToString(l.Scope.ID[:])
}

func fieldOf(l *Limit) string {
	f := dimensionLetters[l.Dimension] + windowLetters[l.Window]
	if len(l.Models) > 0 {
		f += hashed(l.models())
	}
	return f
}

// of is the suffix of the group of a name beyond that of the limit, such as
// "#gpt-4o@" and an end user.
func (f *farRule) of(name string) string {
	if len(name) > 100 {
		return f.base + "#" + hashed(name)
	}
	return f.base + name
}

// othersField is the field that follows a limit's own, for the ledger of those
// beyond the bound on names.
func (f *farRule) othersField() string { return f.field + "+" }

// The numbers of what a limit counts.
const (
	farCountsRequests = 1
	farCountsUnits    = 2
	farCountsPlain    = 3 // tokens, all alike
	farCountsOne      = 4
	farCountsCharge   = 5
	farCountsProvider = 6
	farCountsTokens   = 7 // by weights
)

func (r *rule) farCounts() int {
	switch r.limit.Dimension {
	case DimensionRequests:
		return farCountsRequests
	case DimensionUnits:
		return farCountsUnits
	case DimensionConcurrency:
		return farCountsOne
	case DimensionSpend:
		if r.provider {
			return farCountsProvider
		}
		return farCountsCharge
	}
	for _, w := range r.weights {
		if w != 1000 {
			return farCountsTokens
		}
	}
	return farCountsPlain
}

// window is the calendar window that an instant is in.
func (f *farRule) window(r *rule, wallMS int64) window {
	if w := f.last.Load(); w != nil && wallMS >= w.start && wallMS < w.end {
		return *w
	}
	w := windowAt(&r.limit, wallMS, r.zone)
	f.last.Store(&w)
	return w
}

// packFigures is a cost without its requests: a packed string that is equal for
// equal costs, without the zeros that it ends with.
func packFigures(c *Cost) string {
	p := packer{make([]byte, 0, 80)}
	t := &c.Tokens
	p.ints(c.Units, t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning,
		c.ChargePico/picos, c.ChargePico%picos, c.ProviderPico/picos, c.ProviderPico%picos)
	for len(p.b) > 0 && [8]byte(p.b[len(p.b)-8:]) == [8]byte{} {
		p.b = p.b[:len(p.b)-8]
	}
	return string(p.b)
}

func costOf(figures string, requests int64) Cost {
	u := unpacker{s: figures}
	var n [10]int64
	for i := range len(figures) / 8 {
		n[i%len(n)] = u.int()
	}
	return Cost{
		Requests: requests, Units: n[0], Tokens: Tokens{n[1], n[2], n[3], n[4], n[5]},
		ChargePico: n[6]*picos + n[7], ProviderPico: n[8]*picos + n[9],
	}
}

// nameWithin is what follows the limit's own name in that of a ledger.
func nameWithin(l *Limit, ledger string) string { return strings.TrimPrefix(ledger, l.family()) }

// indexOf is the place of s in the list, which it joins if it is new.
func indexOf[T comparable](list *[]T, s T) int {
	i := slices.Index(*list, s)
	if i < 0 {
		i = len(*list)
		*list = append(*list, s)
	}
	return i
}

// packed is the key and then the body; empty: there is no key.
func (o Once) packed() string {
	if o.Key == uuid.Nil {
		return ""
	}
	return string(o.Key[:]) + string(o.Body[:])
}
