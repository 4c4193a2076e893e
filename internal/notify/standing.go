package notify

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Standing is an alert with the reading that is closest to it now; zero where
// nothing was used.
type Standing struct {
	Alert
	Closest Reading
}

// Standings are all alerts, newest first, as they stand now.
func (s *Service) Standings(ctx context.Context, tenant uuid.UUID) (out []Standing, err error) {
	now := s.instant()
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		out = nil
		b, list, err := s.books(ctx, tx, tenant, now, time.Time{})
		if err != nil {
			return err
		}
		for _, a := range list {
			readings, err := b.read(a)
			if err != nil {
				return err
			}
			st := Standing{Alert: a}
			for _, r := range readings {
				if st.Closest.Subject == "" || float64(r.Value)*float64(max(st.Closest.Of, 1)) > float64(st.Closest.Value)*float64(max(r.Of, 1)) {
					st.Closest = r
				}
			}
			if st.Closest.Name, err = b.nameOf(a, st.Closest); err != nil {
				return err
			}
			out = append(out, st)
		}
		return nil
	})
	return out, err
}

// Firing is one time that an alert told.
type Firing struct {
	Alert   Alert
	Reading Reading
	At      time.Time
}

// Firings are the last ones, newest first.
func (s *Service) Firings(ctx context.Context, tenant uuid.UUID, most int) (out []Firing, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select f.subject, f.name, f.period_start, f.value, f.of_amount, f.fired_at, f.threshold, a.alert_id, a.name, a.kind, a.dimension, a.win
			from alert_firings f join alerts a on a.tenant_id = f.tenant_id and a.alert_id = f.alert_id
			where f.tenant_id = $1
			order by f.fired_at desc, f.alert_id, f.subject limit $2`, tenant, most)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Firing, err error) {
			var threshold string
			r := &f.Reading
			err = row.Scan(&r.Subject, &r.Name, &r.Period, &r.Value, &r.Of, &f.At, &threshold, &f.Alert.ID, &f.Alert.Name, &f.Alert.Kind, &f.Alert.Dimension, &f.Alert.Window)
			if share, found := strings.CutSuffix(threshold, "%"); found {
				f.Alert.Percent, _ = strconv.Atoi(share)
			} else if minutes, found := strings.CutSuffix(threshold, minutesMark); found {
				f.Alert.Minutes, _ = strconv.Atoi(minutes)
			} else {
				f.Alert.Amount, _ = strconv.ParseInt(threshold, 10, 64)
			}
			return f, err
		})
		return err
	})
	return out, err
}
