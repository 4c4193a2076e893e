package usage

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
)

func TestEveryModelsCapComesBackAsItsOwnHoweverManyModelsALimitNames(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	var models []string // 40 names of 31 bytes, within what Check allows
	for i := range 40 {
		models = append(models, fmt.Sprintf("meta-llama/llama-instruct-v%03d", i))
	}
	l := limits.Default(limits.Limit{
		ID: id.New(), Scope: m.plan[0].Scope, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 10_000, Zone: "UTC", Models: models, EachModel: true,
	})
	if wrong := limits.Check([]limits.Limit{l}); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	m.plan = []limits.Limit{l}
	var keys []limits.WindowKey
	for _, model := range models[:2] {
		c := m.call(false)
		c.Model = model
		d := m.admit(c)
		_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
		must(t, err)
		keys = append(keys, limits.WindowKey{Ledger: l.Ledger(model), WindowStart: limits.DayStart(m.clock.now(), time.UTC)})
	}
	m.drain()
	totals, err := NewBooks(m.reports.db, id.New(), nil).CapTotals(t.Context(), m.tenant, keys)
	must(t, err)
	if totals[0].Amount != used.Total() || totals[1].Amount != used.Total() {
		t.Fatalf("each model took %d tokens; after a restart their caps hold %v", used.Total(), totals)
	}
}

func TestASpendCapHoldsWhatTheBooksHoldToThePicoUnit(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	l := limits.Default(limits.Limit{
		ID: id.New(), Scope: m.plan[0].Scope, Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: 1_000, Zone: "UTC",
	})
	m.plan = []limits.Limit{l}
	var want int64
	for i := range int64(7) {
		c := m.call(false)
		c.Rates = []Rate{{Price: id.New(), Class: Input, MicrosPerMillion: 333_333}, {Price: id.New(), Class: PerRequest, MicrosPerMillion: 1}}
		d := m.admit(c)
		_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: limits.Tokens{Input: 5*i + 1}})
		must(t, err)
		want += (5*i+1)*333_333 + 1
	}
	m.drain()
	window := limits.WindowKey{Ledger: l.Ledger(""), WindowStart: limits.DayStart(m.clock.now(), time.UTC)}
	totals, err := NewBooks(m.reports.db, id.New(), nil).CapTotals(t.Context(), m.tenant, []limits.WindowKey{window})
	must(t, err)
	if got := totals[0].Amount*picos + totals[0].Pico; got != want {
		t.Fatalf("the books hold %d pico-units, want %d", got, want)
	}
	s, err := m.engine.Live(t.Context(), m.tenant, m.plan, "", "")
	must(t, err)
	if used := s[0].Used + s[0].Held; used != (want+picos-1)/picos {
		t.Fatalf("the ledger holds %d micro-units of %d pico-units", used, want)
	}
}
