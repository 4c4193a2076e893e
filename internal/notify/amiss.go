package notify

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/usage"
)

// wellWithin is how far behind books may be and still count as well, of an alert
// that allows more: what is on its way is always a few seconds old.
const wellWithin = time.Minute

// behind is how far the books are behind the tenant's calls, in minutes. It is
// none where they are well: then what was told is over.
func (b books) behind(a Alert) ([]Reading, error) {
	since, err := usage.BehindSince(b.ctx, b.tx, b.tenant.ID, b.now)
	allowed := time.Duration(a.Minutes) * time.Minute
	if err != nil || since.IsZero() || b.now.Sub(since) < min(wellWithin, allowed/2) {
		return nil, err
	}
	return []Reading{{Alert: a.ID, Subject: "books", Name: "books", Period: since, Value: int64(b.now.Sub(since) / time.Minute), Of: int64(a.Minutes)}}, nil
}

// apart are the days whose books were found to differ since the alert was made.
// One that is well, and differs again, was found anew.
func (b books) apart(a Alert) ([]Reading, error) {
	days, err := usage.DaysApart(b.ctx, b.tx, b.tenant.ID, a.CreatedAt)
	var out []Reading
	for _, d := range days {
		_, _, zone := b.tenant.Zones.Day(d.Day)
		date := d.Day.Add(8 * time.Hour).In(zone).Format(time.DateOnly)
		out = append(out, Reading{Alert: a.ID, Subject: date, Name: date, Period: d.FoundAt, Value: int64(d.Rows)})
	}
	return out, err
}

// letters are the hours in which something could not be counted since the alert
// was made, and is not counted yet. They are all tenants', so the operator's
// alone.
func (b books) letters(a Alert) ([]Reading, error) {
	if !b.tenant.Operator {
		return nil, nil
	}
	rows, err := b.tx.Query(b.ctx, `
		select date_trunc('hour', created_at, 'UTC'), count(*)
		from dead_letters
		where created_at >= $1 and replayed_at is null
		group by 1`, a.CreatedAt)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Reading, error) {
		r := Reading{Alert: a.ID, Subject: "letters", Name: "dead letters"}
		err := row.Scan(&r.Period, &r.Value)
		r.Period = r.Period.UTC()
		return r, err
	})
}

// over notes what is well again of an alert that fires once until then, so that
// it may fire again.
func over(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, a Alert, amiss []Reading) error {
	if a.Kind != AlertBehind {
		return nil
	}
	still := make([]string, 0, len(amiss))
	for _, r := range amiss {
		still = append(still, r.Subject)
	}
	_, err := tx.Exec(ctx, `
		update alert_firings set stands = false
		where tenant_id = $1 and alert_id = $2 and stands and subject <> all($3)`, tenant, a.ID, still)
	return err
}
