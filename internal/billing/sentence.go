package billing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/limits"
	"weir/internal/money"
)

// Sentence says a set of limits as a customer would: "500 requests and 200,000
// tokens a minute, up to 5 million tokens a day; each end user 20 requests a
// minute". It is always generated, never typed. No limits: "No limits".
func Sentence(list []limits.Limit) string {
	var together, each []limits.Limit
	for _, l := range list {
		switch {
		case l.Mode == limits.ModeShadow: // it is in the fine print
		case l.EachEndUser():
			each = append(each, l)
		default:
			together = append(together, l)
		}
	}
	switch {
	case len(together)+len(each) == 0:
		return "No limits"
	case len(each) == 0:
		return clause(together, "Limits for some models")
	case len(together) == 0:
		return "Each end user " + clause(each, "has limits for some models")
	}
	return clause(together, "Limits for some models") + "; each end user " + clause(each, "has limits for some models")
}

// clause says limits that hold for the same: for all end users together, or for
// each. otherwise stands where all of them are for some models only.
func clause(list []limits.Limit, otherwise string) string {
	general, narrowed := split(list)
	var parts []string
	if s := group(general, limits.WindowMinute); s != "" {
		parts = append(parts, s+" a minute")
	}
	for _, w := range []struct {
		window limits.Window
		words  string
	}{{limits.WindowDay, "a day"}, {limits.WindowRollingDay, "in any 24 hours"}, {limits.WindowMonth, "a month"}} {
		if s := group(general, w.window); s != "" {
			lead := ""
			if len(parts) > 0 {
				lead = "up to "
			}
			parts = append(parts, lead+s+" "+w.words)
		}
	}
	if s := group(general, limits.WindowNone); s != "" {
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		parts = append(parts, otherwise)
	}
	if len(narrowed) > 0 && len(general) > 0 {
		parts = append(parts, "less for some models")
	}
	return strings.Join(parts, ", ")
}

func split(list []limits.Limit) (general, narrowed []limits.Limit) {
	for _, l := range list {
		if len(l.Models) > 0 || l.EachModel {
			narrowed = append(narrowed, l)
		} else {
			general = append(general, l)
		}
	}
	return general, narrowed
}

// order is how dimensions stand in a sentence.
var order = []limits.Dimension{
	limits.DimensionRequests, limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens,
	limits.DimensionUnits, limits.DimensionSpend, limits.DimensionConcurrency,
}

func group(list []limits.Limit, w limits.Window) string {
	var parts []string
	for _, d := range order {
		i := slices.IndexFunc(list, func(l limits.Limit) bool { return l.Dimension == d && l.Window == w })
		if i >= 0 {
			parts = append(parts, quantity(list[i]))
		}
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// quantity is a limit's amount of what it counts.
func quantity(l limits.Limit) string {
	if l.Dimension != limits.DimensionSpend || l.Amount == 0 {
		return amount(l.Amount) + " " + noun(l.Dimension, l.Amount)
	}
	return "a spend of " + money.Times(l.Amount, 1_000_000).Decimal()
}

func noun(d limits.Dimension, n int64) string {
	plural := map[limits.Dimension]string{
		limits.DimensionRequests: "requests", limits.DimensionTokens: "tokens", limits.DimensionInputTokens: "input tokens",
		limits.DimensionOutputTokens: "output tokens", limits.DimensionUnits: "units", limits.DimensionConcurrency: "requests at once",
		limits.DimensionSpend: "spend",
	}[d]
	if n == 1 {
		return strings.Replace(strings.Replace(strings.Replace(plural, "requests", "request", 1), "tokens", "token", 1), "units", "unit", 1)
	}
	return plural
}

// amount writes round millions in words and everything else in full, so that no
// figure is rounded: "5 million", "2.5 million", "200,000".
func amount(n int64) string {
	switch {
	case n == 0:
		return "no"
	case n >= 1_000_000_000 && n%100_000_000 == 0:
		return tenths(n/100_000_000) + " billion"
	case n >= 1_000_000 && n%100_000 == 0:
		return tenths(n/100_000) + " million"
	}
	return Grouped(n)
}

func tenths(n int64) string {
	if n%10 == 0 {
		return Grouped(n / 10)
	}
	return fmt.Sprintf("%s.%d", Grouped(n/10), n%10)
}

// Grouped writes a whole number with thousands separated by commas.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// capped is said of a plan that caps answers.
const capped = "An answer is capped: a call that states no ceiling for it gets one, the output that is held for it when it starts, and a longer answer ends there. A ceiling that the call states stays as it is."

// FinePrint says what each number means, for a tenant whose days end in zone,
// and whether answers are capped.
func FinePrint(list []limits.Limit, capOutput bool, zone string) []string {
	var caps []string
	if capOutput {
		caps = []string{capped}
	}
	if len(list) == 0 {
		return append([]string{"This plan sets no limits of its own; limits of the API key and of the whole account still apply."}, caps...)
	}
	out := []string{}
	if slices.ContainsFunc(list, func(l limits.Limit) bool { return strings.Contains(string(l.Dimension), "tokens") }) {
		out = append(out, "A token is what the provider's usage report counts: input, cached input, cache writes, output and reasoning. A call holds its estimate when it starts and is settled at what it really took.")
	}
	out = append(out, "The limits are shared by all API keys of the customer.")
	if slices.ContainsFunc(list, limits.Limit.EachEndUser) {
		out = append(out, "An end user is whom a call names as its user. What is said of each end user holds for every one of them by itself; calls that name nobody count together, as one.")
	}
	for _, l := range list {
		out = append(out, fine(l, zone)...)
	}
	out = append(out, caps...)
	out = append(out, "A refused call costs nothing and names the limit, what is used, and the exact wait.")
	return append(out, outage(list))
}

func fine(l limits.Limit, zone string) (out []string) {
	name := quantity(l)
	if len(l.Models) > 0 {
		name += " of " + strings.Join(l.Models, ", ")
	}
	if l.EachModel {
		name += " of each model"
	}
	if l.EachEndUser() {
		name += " of each end user"
	}
	if w := weights(l); w != "" {
		out = append(out, "In the limit of "+name+", "+w+".")
	}
	if l.Amount == 0 && l.Mode != limits.ModeShadow {
		return append(out, "This plan allows none of: "+strings.TrimPrefix(name, "no ")+". Such a call is refused, and waiting does not help.")
	}
	if l.Mode == limits.ModeShadow {
		return append(out, "A limit of "+name+" is tried out: what it would refuse is reported, and passes.")
	}
	switch l.Policy {
	case limits.PolicyBucket:
		most, _ := l.MaxIn60s()
		burst := l.Amount
		if l.Burst > 0 {
			burst = l.Burst
		}
		s := fmt.Sprintf("%s a minute refill continuously; up to %s can be used at once, and at most %s can pass in any 60 seconds", name, Grouped(burst), Grouped(most))
		if l.Dimension != limits.DimensionRequests && l.Dimension != limits.DimensionUnits {
			s += ", plus what calls in flight take beyond their estimate"
		}
		out = append(out, s+".")
	case limits.PolicySliding:
		window := "60 seconds"
		if l.Window == limits.WindowRollingDay {
			window = "24 hours"
		}
		s := "Never more than " + name + " in any " + window
		if l.Dimension != limits.DimensionRequests && l.Dimension != limits.DimensionUnits {
			s += ", plus what calls in flight take beyond their estimate"
		}
		out = append(out, s+".")
	case limits.PolicyCalendar:
		out = append(out, fmt.Sprintf("%s a %s: the count starts anew at the beginning of each calendar %s in %s. At the cap, calls are refused until then. A cap that is new counts from the moment it holds, from 0.", name, l.Window, l.Window, zone))
	case limits.PolicyGauge:
		out = append(out, name+": one more is refused until one ends.")
	}
	return out
}

func weights(l limits.Limit) string {
	var parts []string
	for _, c := range []limits.Class{limits.ClassInput, limits.ClassCachedInput, limits.ClassCacheWrite, limits.ClassOutput, limits.ClassReasoning} {
		w, set := l.Weights[c]
		if !set || w == 1000 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s tokens count %s times", strings.ReplaceAll(string(c), "_", " "), strconv.FormatFloat(float64(w)/1000, 'f', -1, 64)))
	}
	return strings.Join(parts, ", ")
}

func outage(list []limits.Limit) string {
	strictest := limits.OutageOpen
	for _, l := range list {
		if l.Outage == limits.OutageClosed || l.Outage == limits.OutageShare && strictest == limits.OutageOpen {
			strictest = l.Outage
		}
	}
	switch strictest {
	case limits.OutageClosed:
		return "If the store of limits cannot be reached, calls are refused (503) until it can."
	case limits.OutageOpen:
		return "If the store of limits cannot be reached, calls are let through and still counted."
	}
	return "If the store of limits cannot be reached, each server grants its share of what was left for at most five minutes, then refuses (503)."
}
