package limits

import (
	"testing"
	"time"

	"weir/internal/id"
)

// What was left of a window says what is used of it only beside its limit.
func TestAWindowWhoseLimitWasNotToldIsAskedOfTheBooks(t *testing.T) {
	t.Parallel()
	day := WindowKey{Ledger: "a/requests/day", WindowStart: time.Now().Truncate(24 * time.Hour)}
	r := &Redis{}
	r.away.sights = map[ident]sight{identify([]byte(day.Ledger)): {left: 400, atMS: time.Now().UnixMilli()}}
	a := &alone{r: r, since: time.Now(), parts: 2, amounts: map[string]int64{}}
	if totals, err := a.CapTotals(t.Context(), id.New(), []WindowKey{day}); err == nil {
		t.Errorf("without books, it knows %+v", totals)
	}
	a.amounts[day.Ledger] = 500
	totals, err := a.CapTotals(t.Context(), id.New(), []WindowKey{day})
	if err != nil || totals[0].Amount != 300 {
		t.Errorf("%+v, %v", totals, err)
	}
}
