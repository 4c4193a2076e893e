package web

import (
	"errors"
	"strconv"
	"strings"

	"weir/internal/billing"
	"weir/web/ui"
)

var schemeOptions = []ui.Option{
	{Value: "per_unit", Label: "each unit its price"},
	{Value: "graduated", Label: "graduated: each unit the price of its tier"},
	{Value: "volume", Label: "volume: all units the price of the tier reached"},
	{Value: "package", Label: "each started package"},
}

var errNoTiers = errors.New("not tiers")

// lastTier is what stands before the price of the tier without end.
const lastTier = "then"

// tierText writes tiers as they are typed: "1,000,000: 2.00; then: 1.50".
func tierText(list []billing.Tier) string {
	var parts []string
	for _, t := range list {
		to := lastTier
		if t.UpTo > 0 {
			to = ui.Count(t.UpTo)
		}
		parts = append(parts, to+": "+micros(t.MicrosPerMillion))
	}
	return strings.Join(parts, "; ")
}

// parseTiers reads what tierText writes; nothing is no tiers.
func parseTiers(s string) (list []billing.Tier, err error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(strings.TrimRight(strings.TrimSpace(s), ";"), ";") {
		to, price, found := strings.Cut(part, ":")
		if !found {
			return nil, errNoTiers
		}
		var t billing.Tier
		if to = strings.TrimSpace(to); to != lastTier {
			if t.UpTo, err = strconv.ParseInt(separators.Replace(to), 10, 64); err != nil || t.UpTo < 1 {
				return nil, errNoTiers
			}
		}
		if t.MicrosPerMillion, err = parseMicros(strings.TrimSpace(price)); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// units is a whole number that was typed, 0 nothing.
func (f *form) units(name string) int64 {
	text := separators.Replace(strings.TrimSpace(f.Get(name)))
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		f.wrong(name, "This is not a whole number.")
	}
	return n
}

// lineWords says a price line's price, its tiers among it.
func lineWords(x billing.Price) string {
	said := micros(x.MicrosPerMillion)
	switch x.Scheme {
	case billing.Graduated, billing.Volume:
		said = string(x.Scheme) + ": " + tierText(x.Tiers)
	case billing.PerPackage:
		said += " for a million, by packages of " + ui.Count(x.Package)
	}
	if x.Included > 0 {
		said += ", " + ui.Count(x.Included) + " included"
	}
	return said
}
