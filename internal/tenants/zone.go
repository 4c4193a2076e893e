package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// TenantChange is what changes of a tenant; nil leaves it as it is.
type TenantChange struct {
	Name *string
	Zone *string
	// UsageDays is how long calls are kept, 30 to 400 days; 0: as long as the
	// installation keeps any. Sums of days stay for ever.
	UsageDays *int
	// CeilingPercent is how much of what its provider keys carry the tenant sells
	// at most without saying why, 1 to 100,000 percent; 0: no ceiling.
	CeilingPercent *int64
}

// zoneNotice is how long a change of zone may take until every process knows of
// it. One asked for so shortly before a day ends takes effect a day later.
const zoneNotice = 5 * time.Second

// Change changes a tenant's name, how long its calls are kept, and its time
// zone. Nothing hangs on the name. A
// zone takes effect when the running day ends, for months the running month
// (limits.Zones); until then another change replaces it, and the zone in effect
// takes it back. More than limits.MaxPastZones changes in limits.ZoneMemory are
// a Conflict.
func (s *Service) Change(ctx context.Context, tenant uuid.UUID, c TenantChange) (Tenant, error) {
	var wrong []fault.Field
	if c.Name != nil {
		wrong = CheckName("/name", *c.Name)
	}
	if c.Zone != nil {
		wrong = append(wrong, CheckZone("/zone", *c.Zone)...)
	}
	if d := c.UsageDays; d != nil && *d != 0 && (*d < 30 || *d > 400) {
		wrong = append(wrong, fault.Field{Pointer: "/usage_days", Code: "out_of_range", Message: "Calls are kept for 30 to 400 days."})
	}
	if p := c.CeilingPercent; p != nil && (*p < 0 || *p > 100_000) {
		wrong = append(wrong, fault.Field{Pointer: "/capacity_ceiling_percent", Code: "out_of_range", Message: "A ceiling is 1 to 100,000 percent, or 0 for none."})
	}
	if len(wrong) > 0 {
		return Tenant{}, fault.InvalidFields(wrong...)
	}
	var t Tenant
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `select from tenants where tenant_id = $1 for update`, tenant); err != nil {
			return err
		}
		if t, err = ReadTenant(ctx, tx, tenant, s.now()); err != nil {
			return err
		}
		if c.Name != nil && *c.Name != t.Name {
			if err := rename(ctx, tx, &t, *c.Name); err != nil {
				return err
			}
		}
		if c.UsageDays != nil && *c.UsageDays != t.UsageDays {
			if err := keepFor(ctx, tx, &t, *c.UsageDays); err != nil {
				return err
			}
		}
		if c.CeilingPercent != nil && *c.CeilingPercent != t.CeilingPercent {
			if err := sellUpTo(ctx, tx, &t, *c.CeilingPercent); err != nil {
				return err
			}
		}
		if c.Zone != nil && *c.Zone != t.Zones.Zone {
			return s.move(ctx, tx, &t, *c.Zone)
		}
		return nil
	})
	return t, err
}

func sellUpTo(ctx context.Context, tx pgx.Tx, t *Tenant, percent int64) error {
	was := t.CeilingPercent
	t.CeilingPercent = percent
	if _, err := tx.Exec(ctx, `update tenants set ceiling_percent = nullif($2, 0) where tenant_id = $1`, t.ID, percent); err != nil {
		return err
	}
	return Audit(ctx, tx, t.ID, "tenant.capacity_ceiling_changed", id.Tenant.Format(t.ID), map[string]int64{"from": was, "to": percent})
}

func rename(ctx context.Context, tx pgx.Tx, t *Tenant, name string) error {
	was := t.Name
	t.Name = name
	if _, err := tx.Exec(ctx, `update tenants set name = $2 where tenant_id = $1`, t.ID, name); err != nil {
		return err
	}
	return Audit(ctx, tx, t.ID, "tenant.renamed", id.Tenant.Format(t.ID), map[string]string{"from": was, "to": name})
}

func keepFor(ctx context.Context, tx pgx.Tx, t *Tenant, days int) error {
	was := t.UsageDays
	t.UsageDays = days
	if _, err := tx.Exec(ctx, `update tenants set usage_days = nullif($2, 0) where tenant_id = $1`, t.ID, days); err != nil {
		return err
	}
	return Audit(ctx, tx, t.ID, "tenant.usage_days_changed", id.Tenant.Format(t.ID), map[string]int{"from": was, "to": days})
}

// move asks for a zone that is not the one asked for last.
func (s *Service) move(ctx context.Context, tx pgx.Tx, t *Tenant, zone string) error {
	z, err := moved(t.Zones, zone, s.now().Add(zoneNotice))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update tenants set zone = $2, past_zones = $3 where tenant_id = $1`, t.ID, z.Zone, z.Past)
	if err != nil {
		return err
	}
	t.Zones = z
	from, pending := z.Pending(s.now())
	if !pending {
		return Audit(ctx, tx, t.ID, "tenant.zone_kept", id.Tenant.Format(t.ID), map[string]string{"zone": zone})
	}
	return Audit(ctx, tx, t.ID, "tenant.zone_changed", id.Tenant.Format(t.ID), map[string]string{"from": t.Zone, "to": zone, "days_from": from.Format(time.RFC3339)})
}

// moved is z after another zone was asked for, as of an instant. What has not
// taken effect by then never does.
func moved(z limits.Zones, zone string, at time.Time) (limits.Zones, error) {
	past := slices.Clone(z.Past)
	_, pending := z.Pending(at)
	switch last := len(past) - 1; {
	case pending && past[last].Zone == zone:
		past = past[:last]
	case !pending:
		past = append(past, limits.PastZone{Zone: z.Zone, UntilMS: at.UnixMilli()})
	}
	past = slices.DeleteFunc(past, func(p limits.PastZone) bool { return p.UntilMS < at.Add(-limits.ZoneMemory).UnixMilli() })
	if len(past) > limits.MaxPastZones {
		return z, fault.New(fault.Conflict, "zone_changed_often", "The time zone was changed 8 times within 100 days. Each change makes one day shorter, with a cap of its own, so no more are taken for now.").
			With(fault.Field{Pointer: "/zone", Code: "zone_changed_often", Message: "The time zone was changed too often; it stays for now."})
	}
	if past == nil {
		past = []limits.PastZone{}
	}
	return limits.Zones{Zone: zone, Past: past}, nil
}
