package web

import (
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/tenants"
	"weir/web/ui"
)

// zoneChange is when a change of the tenant's zone takes effect: one that was
// asked for, or one that would be asked for now.
type zoneChange struct {
	Pending      string // the zone asked for; "" none
	Days, Months string // the instants, in the zone that counts until then
	FirstDay     string // how long the first day of the pending zone lasts, and until when
}

func changeOf(w workspace) zoneChange {
	z := w.Tenant.Zones
	days, pending := z.Pending(w.Now)
	if !pending {
		_, days, _ := z.Day(w.Now)
		_, months, in := z.Month(w.Now)
		return zoneChange{Days: startOf(days, w.Now.Location()), Months: startOf(months, in)}
	}
	months, _ := z.PendingMonths(w.Now)
	_, _, in := z.Month(months.Add(-time.Millisecond))
	c := zoneChange{Pending: z.Zone, Days: startOf(days, w.Now.Location()), Months: startOf(months, in)}
	if _, ends, in := z.Day(days); ends.Sub(days) < 23*time.Hour {
		c.FirstDay = ui.Span(ends.Sub(days)) + ", until " + startOf(ends, in)
	}
	return c
}

// startOf is the beginning of a day with its zone's whole name.
func startOf(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Monday 2 January 15:04 ") + zone.String()
}

func (p *Pages) saveZone(c echo.Context, who auth.Person, w workspace) error {
	was, told := w.Tenant.Zones.Zone, "zone-asked"
	return p.settingsForm(c, who, w, func(v *settingsPage) *form { return &v.Place }, told, func(f form) error {
		zone := strings.TrimSpace(f.Get("zone"))
		if zone == was {
			return nil
		}
		_, err := p.tenants.Change(asPerson(c, who), who.Tenant, tenants.TenantChange{Zone: &zone})
		return err
	})
}
