package limits_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// picture is steady traffic against one limit: what was asked and what passed,
// column by column, as docs/limits.md draws it.
type picture struct {
	limit   limits.Limit
	start   time.Time
	every   time.Duration // between calls
	takes   time.Duration // from the admission to the settlement
	column  time.Duration
	columns int
	within  time.Duration // the span whose most is told
}

var utc = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

var pictures = map[string]picture{
	"bucket":   {limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Policy: limits.PolicyBucket, Amount: 500}, utc, 50 * time.Millisecond, 0, 5 * time.Second, 36, time.Minute},
	"burst":    {limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Policy: limits.PolicyBucket, Amount: 500, Burst: 1_000}, utc, 50 * time.Millisecond, 0, 5 * time.Second, 36, time.Minute},
	"sliding":  {limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Policy: limits.PolicySliding, Amount: 500}, utc, 50 * time.Millisecond, 0, 5 * time.Second, 36, time.Minute},
	"calendar": {limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Policy: limits.PolicyCalendar, Amount: 500, Zone: "Europe/Berlin"}, utc.Add(-time.Hour), 90 * time.Second, 0, 2 * time.Hour, 36, 24 * time.Hour},
	"gauge":    {limits.Limit{Dimension: limits.DimensionConcurrency, Window: limits.WindowNone, Policy: limits.PolicyGauge, Amount: 3}, utc, 250 * time.Millisecond, 2 * time.Second, 500 * time.Millisecond, 36, 0},
}

// draw lets the traffic run through the engine.
func (p picture) draw(t *testing.T) string {
	t.Helper()
	now := p.start
	m := limits.NewMemory(limits.MemoryOptions{Now: func() time.Time { return now }})
	l := limits.Default(p.limit)
	l.Scope = limits.Scope{Kind: limits.ScopeCustomer, ID: uuid.Must(uuid.NewV7())}
	set, tenant := limits.Compile([]limits.Limit{l}), uuid.Must(uuid.NewV7())
	asked, passed := make([]int, p.columns), make([]int, p.columns)
	var at []time.Time
	var open []uuid.UUID
	var ends []time.Time
	for ; now.Sub(p.start) < p.column*time.Duration(p.columns); now = now.Add(p.every) {
		for len(ends) > 0 && !ends[0].After(now) {
			_, err := m.Settle(t.Context(), tenant, open[0], limits.Settlement{})
			if err != nil {
				t.Fatal(err)
			}
			open, ends = open[1:], ends[1:]
		}
		d, err := m.Reserve(t.Context(), limits.Request{Tenant: tenant, Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1}})
		if err != nil {
			t.Fatal(err)
		}
		i := int(now.Sub(p.start) / p.column)
		asked[i]++
		if d.Admitted {
			passed[i]++
			at, open, ends = append(at, now), append(open, d.Reservation.ID), append(ends, now.Add(p.takes))
		}
	}
	text := fmt.Sprintf("asked  %s\npassed %s\n%d asked, %d passed", bars(asked, asked), strings.TrimRight(bars(passed, asked), " "), sum(asked), sum(passed))
	if p.within > 0 {
		text += fmt.Sprintf(", at most %d in any %s", mostWithin(at, p.within), spanWords(p.within))
	}
	return text
}

func spanWords(d time.Duration) string {
	if d == time.Minute {
		return "60 s"
	}
	return "24 h"
}

// bars draws columns on the scale of what was asked.
func bars(list, scale []int) string {
	most := 0
	for _, n := range scale {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range list {
		if n == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[max(0, (n*8+most-1)/most-1)])
	}
	return b.String()
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// mostWithin is how many of these instants, in order, lie within any such span,
// which is open at its end.
func mostWithin(at []time.Time, span time.Duration) (most int) {
	for first, i := 0, 0; i < len(at); i++ {
		for at[i].Sub(at[first]) >= span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestThePicturesOfTheDocumentationAreWhatTheEngineDoes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range pictures {
		if want := p.draw(t); !strings.Contains(string(doc), want) {
			t.Errorf("%s: docs/limits.md does not show\n%s", name, want)
		}
	}
}
