package limits

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"weir/internal/fault"
)

// The bounds that both backends count exactly within.
const (
	maxBucket   = 10_000_000_000
	maxCalendar = 1_000_000_000_000_000
	maxWeight   = 1_000_000 // a thousandfold
	maxLimits   = 100       // in one set
	maxModels   = 50        // patterns in one limit
	maxPattern  = 200       // bytes in one pattern

	maxRefill = 365 * 24 * 60 // minutes until a burst is full again: a wait for it can be told
)

var counted = []Dimension{DimensionRequests, DimensionTokens, DimensionInputTokens, DimensionOutputTokens, DimensionUnits}

// valid is the whole table of what goes with what; any other combination is
// refused where it is configured.
var valid = []struct {
	dimensions []Dimension
	windows    []Window
	policies   []Policy
}{
	{counted, []Window{WindowMinute}, []Policy{PolicyBucket, PolicySliding}},
	{counted, []Window{WindowRollingDay}, []Policy{PolicySliding}},
	{counted, []Window{WindowDay, WindowMonth}, []Policy{PolicyCalendar}},
	{[]Dimension{DimensionSpend}, []Window{WindowDay, WindowMonth}, []Policy{PolicyCalendar}},
	{[]Dimension{DimensionConcurrency}, []Window{WindowNone}, []Policy{PolicyGauge}},
}

// classes are the token classes that a dimension counts, and so may weigh.
var classes = map[Dimension][]Class{
	DimensionTokens:       {ClassInput, ClassCachedInput, ClassCacheWrite, ClassOutput, ClassReasoning},
	DimensionInputTokens:  {ClassInput, ClassCachedInput, ClassCacheWrite},
	DimensionOutputTokens: {ClassOutput, ClassReasoning},
}

// Check returns what is wrong with one set of limits (a plan's, a key's), with
// pointers such as "/limits/0/amount"; none if every one of them can be
// enforced. What Default fills may be left out.
func Check(specs []Limit) []fault.Field {
	if len(specs) > maxLimits {
		return []fault.Field{{Pointer: "/limits", Code: "too_many", Message: fmt.Sprintf("At most %d limits in one set.", maxLimits)}}
	}
	var wrong []fault.Field
	first := map[string]int{}
	for i, l := range specs {
		c := checker{at: "/limits/" + strconv.Itoa(i)}
		c.limit(Default(l))
		l.EachModel = false
		if j, taken := first[l.Ledger("")]; taken {
			c.add("", "duplicate", "Limit %d has the same dimension, window and models.", j+1)
		} else {
			first[l.Ledger("")] = i
		}
		wrong = append(wrong, c.wrong...)
	}
	return wrong
}

type checker struct {
	at    string
	wrong []fault.Field
}

// longestEcho is how much of a wrong value a message repeats, in bytes.
const longestEcho = 60

// add notes what is wrong with a member. Text that the caller sent is cut where
// the message repeats it.
func (c *checker) add(member, code, format string, args ...any) {
	for i, a := range args {
		if s := fmt.Sprint(a); reflect.ValueOf(a).Kind() == reflect.String && len(s) > longestEcho {
			args[i] = strings.ToValidUTF8(s[:longestEcho], "") + "…"
		}
	}
	c.wrong = append(c.wrong, fault.Field{Pointer: c.at + member, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) limit(l Limit) {
	if c.combination(l) {
		c.amounts(l)
	}
	c.models(l)
	c.weights(l)
	c.modes(l)
	if l.Policy != PolicyCalendar && l.Zone != "" {
		c.add("/zone", "not_allowed", "Only a day or a month has a time zone.")
	} else if _, err := zone(l.Zone); err != nil {
		c.add("/zone", "unknown_zone", "%q is no IANA time zone, such as Europe/Berlin.", l.Zone)
	}
}

// combination tells whether the limit stands in the table; it names the first
// member that takes it out.
func (c *checker) combination(l Limit) bool {
	var dimension, window bool
	for _, row := range valid {
		if !slices.Contains(row.dimensions, l.Dimension) {
			continue
		}
		dimension = true
		if !slices.Contains(row.windows, l.Window) {
			continue
		}
		window = true
		if slices.Contains(row.policies, l.Policy) {
			return true
		}
	}
	switch {
	case !dimension:
		c.add("/dimension", "unknown_value", "%q is no dimension: use requests, tokens, input_tokens, output_tokens, units, concurrency or spend.", l.Dimension)
	case !known(l.Window):
		c.add("/window", "unknown_value", "%q is no window: use minute, day, month, rolling_day or none.", l.Window)
	case !window:
		c.add("/window", "not_allowed", "There is no limit on %s with the window %s.", l.Dimension, l.Window)
	default:
		c.add("/policy", "not_allowed", "The policy %q does not go with %s.", l.Policy, l.Label())
	}
	return false
}

func known(w Window) bool {
	return slices.Contains([]Window{WindowMinute, WindowDay, WindowMonth, WindowRollingDay, WindowNone}, w)
}

func (c *checker) amounts(l Limit) {
	most := int64(maxBucket)
	if l.Policy == PolicyCalendar {
		most = maxCalendar
	}
	if l.Amount < 0 || l.Amount > most {
		c.add("/amount", "out_of_range", "Must be a whole number from 0 to %s.", grouped(most))
	}
	switch {
	case l.Burst == 0:
	case l.Policy != PolicyBucket:
		c.add("/burst", "not_allowed", "Only a limit per minute with the policy bucket has a burst.")
	case l.Amount == 0:
		c.add("/burst", "not_allowed", "An amount of 0 admits nothing, so it has no burst.")
	case l.Burst < l.Amount || l.Burst > maxBucket:
		c.add("/burst", "out_of_range", "Must be at least the amount and at most %s.", grouped(maxBucket))
	case l.Burst > l.Amount*maxRefill:
		c.add("/burst", "out_of_range", "Must be at most %s, which refill in a year.", grouped(l.Amount*maxRefill))
	}
}

func (c *checker) models(l Limit) {
	if len(l.Models) > maxModels {
		c.add("/models", "too_many", "At most %d models or patterns.", maxModels)
		return
	}
	for i, p := range l.Models {
		member := "/models/" + strconv.Itoa(i)
		switch {
		case p == "" || len(p) > maxPattern:
			c.add(member, "invalid_pattern", "Must have 1 to %d characters.", maxPattern)
		case strings.ContainsFunc(p, func(r rune) bool { return r == ',' || r == '#' || unicode.IsSpace(r) || unicode.IsControl(r) }):
			c.add(member, "invalid_pattern", "A model name has no commas, hashes or spaces.")
		case slices.Contains(l.Models[:i], p):
			c.add(member, "duplicate", "%q stands in the list twice.", p)
		}
	}
}

func (c *checker) weights(l Limit) {
	for class, w := range l.Weights {
		member := "/weights/" + string(class)
		switch {
		case !slices.Contains(classes[l.Dimension], class):
			c.add(member, "not_allowed", "A limit on %s does not count a class %q.", l.Dimension, class)
		case w < 0 || w > maxWeight:
			c.add(member, "out_of_range", "A weight is in thousandths, from 0 to %s.", grouped(maxWeight))
		}
	}
	slices.SortFunc(c.wrong, func(a, b fault.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
}

func (c *checker) modes(l Limit) {
	if l.Mode != ModeEnforce && l.Mode != ModeShadow {
		c.add("/mode", "unknown_value", "%q is no mode: use enforce or shadow.", l.Mode)
	}
	if l.Outage != OutageShare && l.Outage != OutageClosed && l.Outage != OutageOpen {
		c.add("/outage", "unknown_value", "%q is no outage mode: use share, closed or open.", l.Outage)
	}
	kinds := []ScopeKind{"", ScopeTenant, ScopeCustomer, ScopeAPIKey, ScopeClientToken, ScopeEndUser, ScopeProviderKey, ScopePool}
	if !slices.Contains(kinds, l.Scope.Kind) {
		c.add("/scope", "unknown_value", "%q is no scope.", l.Scope.Kind)
	}
}

// grouped writes n with commas: 10,000,000,000.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
