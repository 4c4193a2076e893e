package httpapi

import (
	"time"

	"weir/internal/id"
	"weir/internal/tenants"
)

type tenantBody struct {
	Name      *string `json:"name,omitempty"`
	Zone      *string `json:"zone,omitempty" description:"IANA time zone in which days are to begin" example:"Europe/Berlin"`
	UsageDays *int    `json:"usage_days,omitempty" description:"How many days calls are kept, 30 to 400; 0: as long as the installation keeps any. Sums of days stay for ever" example:"90"`

	CeilingPercent *int64 `json:"capacity_ceiling_percent,omitempty" minimum:"0" maximum:"100000" description:"How much of what the provider keys carry is sold at most without a reason, in percent: 450 is 4.5 times; 0: no ceiling" example:"450"`
}

type tenantJSON struct {
	ID             string           `json:"id" example:"ten_01kb0000000000000000000000"`
	Name           string           `json:"name"`
	Zone           string           `json:"zone" description:"IANA time zone in which days begin now" example:"Europe/Berlin"`
	Currency       string           `json:"currency" example:"EUR"`
	UsageDays      int              `json:"usage_days" description:"How many days calls are kept; 0: as long as the installation keeps any"`
	CeilingPercent int64            `json:"capacity_ceiling_percent" description:"How much of what the provider keys carry is sold at most without a reason, in percent; 0: no ceiling"`
	PendingZone    *pendingZoneJSON `json:"pending_zone" description:"A change of zone that has not taken effect for days yet, or null"`
}

type pendingZoneJSON struct {
	Zone       string    `json:"zone" example:"Asia/Tokyo"`
	DaysFrom   time.Time `json:"days_from" description:"When the running day ends: the next one is counted in this zone"`
	MonthsFrom time.Time `json:"months_from" description:"When the running month ends"`
}

func (s *Server) tenantOf(t tenants.Tenant) tenantJSON {
	out := tenantJSON{ID: id.Tenant.Format(t.ID), Name: t.Name, Zone: t.Zone, Currency: t.Currency, UsageDays: t.UsageDays, CeilingPercent: t.CeilingPercent}
	if days, pending := t.Zones.Pending(s.now()); pending {
		months, _ := t.Zones.PendingMonths(s.now())
		out.PendingZone = &pendingZoneJSON{Zone: t.Zones.Zone, DaysFrom: days, MonthsFrom: months}
	}
	return out
}

func getTenant(s *Server, r *request, _ none, _ none) (tenantJSON, error) {
	t, err := s.tenants.Get(r.ctx, r.tenant())
	return s.tenantOf(t), err
}

func changeTenant(s *Server, r *request, _ none, b tenantBody) (tenantJSON, error) {
	t, err := s.tenants.Change(r.ctx, r.tenant(), tenants.TenantChange{Name: b.Name, Zone: b.Zone, UsageDays: b.UsageDays, CeilingPercent: b.CeilingPercent})
	return s.tenantOf(t), err
}
