package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/capacity"
	"weir/internal/fault"
	"weir/internal/tenants"
)

// settingsPage is what the settings show: the person's own, and the tenant's.
type settingsPage struct {
	workspace
	Email        string
	Profile      form
	Password     form
	HasPassword  bool
	Organisation form
	Place        form // its time zone
	Change       zoneChange
	Devices      []device
	Brand        brandSettings
	Owner        bool
}

// device is a session in a list.
type device struct {
	auth.Device
	Here bool
}

func (p *Pages) mountSettings(e *echo.Echo) {
	p.get(e, "/settings", p.page("", p.settings))
	p.post(e, "/settings/profile", p.page("", p.saveProfile))
	p.post(e, "/settings/password", p.page("", p.savePassword))
	p.post(e, "/settings/sessions/end", p.page("", p.endOtherSessions))
	p.post(e, "/settings/tenant", p.page(changeTenant, p.saveTenant))
	p.post(e, "/settings/zone", p.page(changeTenant, p.saveZone))
}

// settingsOf reads the page as it stands.
func (p *Pages) settingsOf(c echo.Context, who auth.Person, w workspace) (settingsPage, error) {
	ctx := c.Request().Context()
	v := settingsPage{
		workspace: w, Email: who.User.Email, Owner: w.May(changeTenant),
		Profile:      form{Values: map[string][]string{"name": {who.User.Name}}},
		Organisation: form{Values: map[string][]string{"tenant": {w.Tenant.Name}, "usage_days": {daysKept(w.Tenant)}, "capacity_ceiling": {ceilingOf(w.Tenant)}}},
		Place:        form{Values: map[string][]string{"zone": {w.Tenant.Zones.Zone}}},
		Change:       changeOf(w),
	}
	b, err := p.brands.Brand(ctx, who.Tenant)
	if err != nil {
		return v, err
	}
	v.Brand = brandSettings{Brand: b, form: brandForm(b)}
	if v.HasPassword, err = p.accounts.HasPassword(ctx, who.User.ID); err != nil {
		return v, err
	}
	list, err := p.sessions.Devices(ctx, who.User.ID)
	for _, d := range list {
		d.CreatedAt, d.SeenAt = d.CreatedAt.In(w.Now.Location()), d.SeenAt.In(w.Now.Location())
		v.Devices = append(v.Devices, device{d, d.Session == who.Session})
	}
	return v, err
}

func (p *Pages) settings(c echo.Context, who auth.Person, w workspace) error {
	v, err := p.settingsOf(c, who, w)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, settingsView(v))
}

// settingsForm runs one of the page's forms: what is refused is shown at its
// fields, with what was typed.
func (p *Pages) settingsForm(c echo.Context, who auth.Person, w workspace, place func(*settingsPage) *form, what string, do func(form) error) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	if err = do(f); err == nil {
		return done(c, "/settings", what)
	}
	status, err := f.refuseEntry(err)
	if err != nil {
		return err
	}
	v, err := p.settingsOf(c, who, w)
	if err != nil {
		return err
	}
	*place(&v) = f
	return show(c, status, settingsView(v))
}

func (p *Pages) saveProfile(c echo.Context, who auth.Person, w workspace) error {
	return p.settingsForm(c, who, w, func(v *settingsPage) *form { return &v.Profile }, "profile-saved", func(f form) error {
		return p.accounts.Rename(c.Request().Context(), who.User.ID, strings.TrimSpace(f.Get("name")))
	})
}

func (p *Pages) savePassword(c echo.Context, who auth.Person, w workspace) error {
	return p.settingsForm(c, who, w, func(v *settingsPage) *form { return &v.Password }, "password-changed", func(f form) error {
		return p.accounts.ChangePassword(c.Request().Context(), who, f.Get("current"), f.Get("password"))
	})
}

func (p *Pages) saveTenant(c echo.Context, who auth.Person, w workspace) error {
	return p.settingsForm(c, who, w, func(v *settingsPage) *form { return &v.Organisation }, "tenant-saved", func(f form) error {
		name := strings.TrimSpace(f.Get("tenant"))
		if wrong := tenants.CheckName("/tenant", name); len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		days := 0
		if typed := strings.TrimSpace(f.Get("usage_days")); typed != "" {
			n, err := strconv.Atoi(typed)
			if days = n; err != nil || n == 0 {
				return fault.InvalidFields(fault.Field{Pointer: "/usage_days", Code: "out_of_range", Message: "Type a number of days, 30 to 400, or nothing."})
			}
		}
		ceiling, err := parseCeiling(f.Get("capacity_ceiling"))
		if err != nil {
			return err
		}
		_, err = p.tenants.Change(asPerson(c, who), who.Tenant, tenants.TenantChange{Name: &name, UsageDays: &days, CeilingPercent: &ceiling})
		return err
	})
}

// ceilingOf is a tenant's ceiling as a factor, "" where it has none.
func ceilingOf(t tenants.Tenant) string {
	if t.CeilingPercent == 0 {
		return ""
	}
	return strings.TrimSuffix(capacity.Times(t.CeilingPercent), " times")
}

// parseCeiling reads a factor such as 4.5 as percent; nothing is 0.
func parseCeiling(s string) (int64, error) {
	s = strings.TrimRight(strings.TrimSpace(s), "× x")
	if s == "" {
		return 0, nil
	}
	micros, err := parseMicros(s)
	if err != nil || micros%10_000 != 0 || micros == 0 || micros > 1_000_000_000 {
		return 0, fault.InvalidFields(fault.Field{Pointer: "/capacity_ceiling", Code: "out_of_range", Message: "Type a factor such as 4.5, with at most two decimals and up to 1,000, or nothing."})
	}
	return micros / 10_000, nil
}

// daysKept is how long a tenant's calls are kept, "" where it says nothing.
func daysKept(t tenants.Tenant) string {
	if t.UsageDays == 0 {
		return ""
	}
	return strconv.Itoa(t.UsageDays)
}

func (p *Pages) endOtherSessions(c echo.Context, who auth.Person, _ workspace) error {
	if _, err := p.sessions.EndOthers(c.Request().Context(), who.User.ID, who.Session); err != nil {
		return err
	}
	return done(c, "/settings", "sessions-ended")
}
