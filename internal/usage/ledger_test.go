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
	if totals[0] != used.Total() || totals[1] != used.Total() {
		t.Fatalf("each model took %d tokens; after a restart their caps hold %v", used.Total(), totals)
	}
}
