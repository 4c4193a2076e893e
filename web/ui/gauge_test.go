package ui

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAGaugeDrawsWhatItSays(t *testing.T) {
	t.Parallel()
	const debt, held, shadow, bracket, pace, alert = "p-debt", "p-held", "p-shadow", `class="ln-w"`, `class="mk"`, "ln-warn"
	for name, c := range map[string]struct {
		gauge Gauge
		has   []string
		not   []string
	}{
		"used and held": {Gauge{Limit: 200, Used: 100, Held: 20, Refill: 33, Label: "100 used"}, []string{`aria-label="100 used"`, `width="50.000%"`, `width="10.000%"`, held, bracket, `x1="33.500%"`}, []string{debt, shadow, pace}},
		"untouched":     {Gauge{Limit: 200, Refill: 33}, nil, []string{"f-used", "f-top", held, bracket}},
		"debt":          {Gauge{Limit: 100, Used: 100, Debt: 50}, []string{debt, `width="14.0"`, `x="100.000%"`}, nil},
		"a day":         {Gauge{Limit: 100, Used: 10, Pace: 0.25}, []string{pace, `x="25.000%"`}, []string{bracket}},
		"shadow":        {Gauge{Limit: 100, Used: 40, Shadow: true}, []string{shadow, "dash"}, []string{"f-used"}},
		"alert":         {Gauge{Limit: 100, Alert: 80}, []string{alert, `x1="80.000%"`}, nil},
		"learned":       {Gauge{Limit: 60, Configured: 120, Used: 30}, []string{"dash", `x1="50.000%" x2="50.000%" y1="0"`, `width="25.000%"`}, nil},
		"zero":          {Gauge{Limit: 0}, []string{`x1="0.000%" x2="0.000%" y1="0"`}, []string{"f-used", "NaN", "Inf"}},
		"over":          {Gauge{Limit: 10, Used: 50, Held: 50}, []string{`width="100.000%"`}, []string{`width="500`, "-"}},
	} {
		svg := render(t, Meter(c.gauge))
		for _, want := range c.has {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %s in %s", name, want, svg)
			}
		}
		for _, not := range c.not {
			if not == "-" {
				not = `"-`
			}
			if strings.Contains(svg, not) {
				t.Errorf("%s: %s in %s", name, not, svg)
			}
		}
		if strings.Contains(svg, "style=") {
			t.Errorf("%s: a style attribute", name)
		}
	}
}

func TestSpansAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", time.Millisecond: "0.1 s", 4300 * time.Millisecond: "4.3 s", 58*time.Second + 1: "59 s", 10 * time.Minute: "10 min",
		9*time.Hour + 27*time.Minute + time.Second: "9 h 28 min", 60 * time.Hour: "3 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestASentenceSetsItsFiguresAndNothingElse(t *testing.T) {
	t.Parallel()
	got := render(t, Sentence("500 requests and 2.5 million <tokens>, up to 7."))
	if want := "<b>500</b> requests and <b>2.5 million</b> &lt;tokens&gt;, up to <b>7</b>."; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("%q", got)
	}
}

func TestAFieldCarriesItsErrorAndItsHint(t *testing.T) {
	t.Parallel()
	got := render(t, Text(Input{Name: "limits.0.amount", Label: "Amount", Value: `"><script>`, Hint: "hint", Error: "not a number"}))
	for _, want := range []string{`id="f-limits-0-amount"`, `name="limits.0.amount"`, `aria-invalid="true"`, `aria-describedby="f-limits-0-amount-error f-limits-0-amount-hint"`, `id="f-limits-0-amount-error"`, "not a number", `for="f-limits-0-amount"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "<script>") {
		t.Error("what was typed became markup")
	}
	if list := render(t, Errors([]Wrong{{"name", "A name is needed."}, {"", "Too late."}})); !strings.Contains(list, `href="#f-name"`) || !strings.Contains(list, "2 things") {
		t.Error(list)
	}
}
