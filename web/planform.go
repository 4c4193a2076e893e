package web

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/billing"
	sums "weir/internal/money"
	"weir/internal/usage"
	"weir/web/ui"
)

// priceRow is a line of a price list as a row of a form.
type priceRow struct {
	Models, Class, Price             ui.Input
	Scheme, Included, Package, Tiers ui.Input
	Finer                            bool // any of these is set, or not right
	Error                            string
}

var classOptions = []ui.Option{
	{Value: "input", Label: "input"},
	{Value: "cached_input", Label: "cached input"},
	{Value: "cache_write", Label: "cache writes"},
	{Value: "output", Label: "output"},
	{Value: "reasoning", Label: "reasoning"},
	{Value: "request", Label: "requests"},
	{Value: "unit", Label: "units"},
}

func classWords(c usage.Class) string {
	for _, o := range classOptions {
		if o.Value == string(c) {
			return o.Label
		}
	}
	return string(c)
}

func (f form) priceRows(least int) (out []priceRow) {
	for i := range min(maxRows, max(least, f.rows("prices", "price"))) {
		n := strconv.Itoa(i + 1)
		in := func(member, says string) ui.Input {
			x := f.input(row("prices", i, member), "")
			x.Label2 = "Price " + n + ", " + says
			return x
		}
		r := priceRow{Models: in("models", "models"), Class: in("class", "for"), Price: in("price", "price for a million"), Error: f.Error("prices." + strconv.Itoa(i))}
		r.Price.Error += f.Error(row("prices", i, "micros_per_million"))
		r.Models.Class, r.Models.Placeholder = "mono", "every model"
		r.Class.Options = ui.Choose(r.Class.Value, append([]ui.Option{}, classOptions...)...)
		r.Price.Class, r.Price.InputMode, r.Price.Placeholder = "num", "decimal", "none"
		r.Scheme, r.Included, r.Package, r.Tiers = in("scheme", "scheme"), in("included", "included units"), in("package_size", "units of a package"), in("tiers", "tiers")
		r.Scheme.Options = ui.Choose(r.Scheme.Value, append([]ui.Option{}, schemeOptions...)...)
		r.Tiers.Placeholder = "1,000,000: 2.00; then: 1.50"
		for _, x := range []ui.Input{r.Scheme, r.Included, r.Package, r.Tiers} {
			r.Finer = r.Finer || x.Value != "" && x.Value != "per_unit" || x.Error != ""
		}
		out = append(out, r)
	}
	return out
}

// putPrice writes a price into a row of the form.
func (f form) putPrice(i int, x billing.Price) {
	f.Set(row("prices", i, "class"), string(x.Class))
	f.Set(row("prices", i, "price"), micros(x.MicrosPerMillion))
	f.Set(row("prices", i, "scheme"), string(x.Scheme))
	f.Set(row("prices", i, "tiers"), tierText(x.Tiers))
	for member, n := range map[string]int64{"included": x.Included, "package_size": x.Package} {
		if n > 0 {
			f.Set(row("prices", i, member), ui.Count(n))
		}
	}
	if f.Set(row("prices", i, "models"), x.Models); x.Models == "*" {
		f.Set(row("prices", i, "models"), "")
	}
}

// prices reads the rows that have a price, and which row each came from.
func (f *form) prices() (list []billing.Price, from []int) {
	for i := range f.rows("prices", "price") {
		typed := strings.TrimSpace(f.Get(row("prices", i, "price")))
		tiers := f.Get(row("prices", i, "tiers"))
		if typed == "" && strings.TrimSpace(tiers) == "" {
			continue
		}
		x := billing.Price{Models: strings.TrimSpace(f.Get(row("prices", i, "models"))), Class: usage.Class(f.Get(row("prices", i, "class")))}
		if x.Models == "" {
			x.Models = "*"
		}
		x.Scheme = billing.Scheme(f.Get(row("prices", i, "scheme")))
		x.Included, x.Package = f.units(row("prices", i, "included")), f.units(row("prices", i, "package_size"))
		var err error
		if x.Tiers, err = parseTiers(tiers); err != nil {
			f.wrong(row("prices", i, "tiers"), "Write tiers as 1,000,000: 2.00; then: 1.50 – up to how many units, and the price for a million of them.")
		}
		if typed == "" {
			typed = "0"
		}
		if x.MicrosPerMillion, err = parseMicros(typed); err != nil {
			f.wrong(row("prices", i, "price"), "This is not a price such as 2.50, with at most six decimals.")
		}
		list, from = append(list, x), append(from, i)
	}
	return list, from
}

// parseMicros reads a price for a million in whole currency: "2.50" is 2,500,000
// micro-units.
func parseMicros(s string) (int64, error) {
	whole, frac, point := strings.Cut(separators.Replace(s), ".")
	if len(frac) > 6 || point && frac == "" || whole == "" || len(whole) > 9 {
		return 0, fmt.Errorf("not a price: %q", s)
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 6-len(frac)), 10, 63)
	return int64(n), err
}

// micros writes micro-units as a price, with two decimals or as many as it has.
func micros(n int64) string {
	frac := fmt.Sprintf("%06d", n%1_000_000)
	for len(frac) > 2 && strings.HasSuffix(frac, "0") {
		frac = frac[:len(frac)-1]
	}
	return ui.Count(n/1_000_000) + "." + frac
}

// version reads what a plan form says. What is no number is noted in the form.
func (f *form) version(currency string) (n billing.NewVersion, limitRows, priceRows []int) {
	n.Limits, limitRows = f.limits()
	n.Prices, priceRows = f.prices()
	n.CapOutput = f.Get("cap_output") == "true"
	n.TrialDays = int(min(f.units("trial_days"), 1000))
	if least := separators.Replace(f.Get("minimum.amount")); least != "" {
		n.Minimum = &sums.Amount{Amount: least, Currency: currency}
	}
	if fee := separators.Replace(f.Get("base_fee.amount")); fee != "" {
		n.BaseFee = &sums.Amount{Amount: fee, Currency: currency}
	}
	return n, limitRows, priceRows
}

// putVersion writes a version into the form.
func (f form) putVersion(v billing.Version) {
	for i, l := range v.Limits {
		f.put(i, l)
	}
	for i, x := range v.Prices {
		f.putPrice(i, x)
	}
	if v.CapOutput {
		f.Set("cap_output", "true")
	}
	if v.TrialDays > 0 {
		f.Set("trial_days", ui.Count(int64(v.TrialDays)))
	}
	if v.Minimum > 0 {
		f.Set("minimum.amount", sums.FormatMinor(v.Minimum, v.Currency))
	}
	if v.BaseFee > 0 {
		f.Set("base_fee.amount", sums.FormatMinor(v.BaseFee, v.Currency))
	}
}
