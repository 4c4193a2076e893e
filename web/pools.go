package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// poolRow is a pool in a list.
type poolRow struct {
	ID, Name, Provider string
	Keys               []string
	Level              *ui.Level // of its limit with the least room; nil: no limit
	LevelLost          bool
	Learned            int
}

// poolRows are the tenant's pools, as they stand.
func (p *Pages) poolRows(c echo.Context, w workspace) ([]poolRow, error) {
	ctx := c.Request().Context()
	page, err := p.tenants.Pools(ctx, w.Tenant.ID, uuid.Nil, 100)
	if err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	for _, x := range page.Items {
		ids = append(ids, x.Keys...)
	}
	names, err := p.tenants.Names(ctx, w.Tenant.ID, ids)
	out := []poolRow{}
	for _, x := range page.Items {
		r := poolRow{ID: id.Pool.Format(x.ID), Name: x.Name, Provider: providerName(x.Provider), Learned: len(x.Learned)}
		for _, k := range x.Keys {
			r.Keys = append(r.Keys, names[k].Name)
		}
		levels := tile(p, c, "levels", func() ([]ui.Level, error) { return p.levels(ctx, w.Tenant.ID, x.Limits, "", w.Now) })
		if r.LevelLost = levels == nil; !r.LevelLost {
			r.Level = fullest(*levels)
		}
		out = append(out, r)
	}
	return out, err
}

// poolPage is a pool's form.
type poolPage struct {
	workspace
	form
	ID, Name, Provider string // "" of a new one
	Action             string
	Keys               []ui.Option
	Levels             *[]ui.Level
	Learned            []factRow
}

func (v poolPage) title() string {
	if v.ID == "" {
		return "Pool provider keys"
	}
	return v.Name
}

// dayZone is where the provider's days end.
func (v poolPage) dayZone() ui.Input {
	in := v.input("zone", "Its days end in")
	in.Hint = "An IANA name such as America/Los_Angeles."
	if v.ID == "" {
		in.Optional, in.Hint = true, in.Hint+" Empty: as the provider’s days do."
	} else {
		in.Hint += " Another zone counts once the running day ends; what is used until then stays used."
	}
	return in
}

// members is the choice of the keys that share the account.
func (v poolPage) members() ui.Input {
	in := v.input("provider_keys", "Keys of the account")
	in.Options, in.Hint = v.Keys, "All of one provider. A key is in one pool at the most."
	return in
}

func (p *Pages) newPool(c echo.Context, who auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	return p.showPool(c, who, w, tenants.Pool{}, f, http.StatusOK)
}

func (p *Pages) showPool(c echo.Context, who auth.Person, w workspace, x tenants.Pool, f form, status int) error {
	ctx := c.Request().Context()
	v := poolPage{workspace: w, form: f, Name: x.Name, Action: "/providers/pools"}
	keys, err := p.tenants.ProviderKeys(ctx, who.Tenant, uuid.Nil, 100)
	if err != nil {
		return err
	}
	for _, k := range keys.Items {
		if x.ID != uuid.Nil && k.Provider != x.Provider {
			continue
		}
		value := id.ProviderKey.Format(k.ID)
		o := ui.Option{Value: value, Label: k.Name, Hint: providerName(k.Provider), Chosen: f.picked("provider_keys", value), Whole: true}
		if k.Pool.ID != uuid.Nil && k.Pool.ID != x.ID {
			o.Hint += ", in pool " + k.Pool.Name
		}
		v.Keys = append(v.Keys, o)
	}
	if x.ID != uuid.Nil {
		v.ID, v.Provider = id.Pool.Format(x.ID), providerName(x.Provider)
		v.Action += "/" + v.ID
		v.Levels = tile(p, c, "levels", func() ([]ui.Level, error) { return p.levels(ctx, who.Tenant, x.Limits, "", w.Now) })
		v.Learned = learnedFacts(x.Learned, x.Limits, catalogue.Offer{}, w.Now)
	}
	return show(c, status, poolView(v))
}

// poolForm is a pool as its form shows it.
func poolForm(x tenants.Pool) form {
	f := keyForm(x.Name, x.Limits)
	f.Set("zone", x.Zone)
	for _, k := range x.Keys {
		f.Add("provider_keys", id.ProviderKey.Format(k))
	}
	return f
}

// memberIDs are the keys that are ticked.
func (f form) memberIDs() []uuid.UUID {
	out := []uuid.UUID{}
	for _, text := range f.Values["provider_keys"] {
		key, _ := id.ProviderKey.Parse(text) // nobody has the zero id
		out = append(out, key)
	}
	return out
}

// refusePool takes what was refused into the form. A key that is gone is the
// list's to say.
func (f *form) refusePool(err error, from []int) (int, error) {
	status, err := f.refuse(rowed(err, "limits", from))
	if err == nil && f.Error("provider") != "" {
		f.Wrong = []ui.Wrong{{Name: "provider_keys", Message: "Tick at least one key: it says at which provider the account is."}}
	}
	return status, err
}

func (p *Pages) addPool(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("do") == "row" {
		return p.showPool(c, who, w, tenants.Pool{}, f.another(), http.StatusOK)
	}
	change, from := f.change()
	status := http.StatusBadRequest
	if len(f.Wrong) == 0 {
		n := tenants.NewPool{Name: *change.Name, Keys: f.memberIDs(), Zone: strings.TrimSpace(f.Get("zone"))}
		if change.Limits != nil {
			n.Limits = *change.Limits
		}
		_, err := p.tenants.AddPool(asPerson(c, who), who.Tenant, n)
		if err == nil {
			p.directory.RoutesChanged(who.Tenant)
			return done(c, "/providers", "pool-added")
		}
		if status, err = f.refusePool(err, from); err != nil {
			return err
		}
	}
	return p.showPool(c, who, w, tenants.Pool{}, f, status)
}

// editPool shows a pool with its form, and a POST changes it.
func (p *Pages) editPool(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.poolOf(c, who)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.showPool(c, who, w, x, poolForm(x), http.StatusOK)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("do") == "row" {
		return p.showPool(c, who, w, x, f.another(), http.StatusOK)
	}
	change, from := f.change()
	status := http.StatusBadRequest
	if len(f.Wrong) == 0 {
		keys := f.memberIDs()
		_, err := p.tenants.ChangePool(asPerson(c, who), who.Tenant, x.ID, tenants.PoolChange{Name: change.Name, Limits: change.Limits, Zone: change.Zone, Keys: &keys})
		if err == nil {
			p.directory.RoutesChanged(who.Tenant)
			return done(c, "/providers/pools/"+c.Param("id"), "pool-changed")
		}
		if status, err = f.refusePool(err, from); err != nil {
			return err
		}
	}
	return p.showPool(c, who, w, x, f, status)
}

func (p *Pages) poolOf(c echo.Context, who auth.Person) (tenants.Pool, error) {
	pool, err := param(c, id.Pool, "pool")
	if err != nil {
		return tenants.Pool{}, err
	}
	return p.tenants.Pool(c.Request().Context(), who.Tenant, pool)
}

// removePool asks before a pool is taken apart, and POST takes it apart.
func (p *Pages) removePool(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.poolOf(c, who)
	if err != nil {
		return err
	}
	ask, err := p.poolRemoval(c.Request().Context(), w, x)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, ask)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("word") != x.Name {
		return p.askAgain(c, w, ask, f)
	}
	if err := p.tenants.RemovePool(asPerson(c, who), who.Tenant, x.ID); err != nil {
		return err
	}
	p.directory.RoutesChanged(who.Tenant)
	return done(c, "/providers", "pool-removed")
}

// poolRemoval says what the end of a pool means, in numbers.
func (p *Pages) poolRemoval(ctx context.Context, w workspace, x tenants.Pool) (ui.Confirm, error) {
	at := "/providers/pools/" + id.Pool.Format(x.ID)
	aliases, err := p.tenants.Aliases(ctx, w.Tenant.ID)
	var naming int64
	for _, a := range aliases {
		for _, c := range a.Candidates {
			if c.Pool == x.ID {
				naming++
			}
		}
	}
	ask := ui.Confirm{
		Title: "Take " + x.Name + " apart?", Text: "The keys stay. What the pool has counted stays in the books.",
		Action: at + "/remove", Back: at, Keep: "Keep it", Do: "Take it apart", Word: x.Name, Typed: ui.Input{Name: "word"},
		Consequences: []ui.Consequence{
			ui.Consequence{Tone: ui.Warn}.Of(int64(len(x.Keys)), "key counts by itself from now on, and may ask its account for more than that allows", "keys count each by itself from now on, and may together ask their account for more than it allows"),
			ui.Consequence{}.Of(int64(len(x.Limits)), "limit of the pool ends", "limits of the pool end"),
			ui.Consequence{}.Of(naming, "line of an alias names the pool, and is passed over from now on", "lines of aliases name the pool, and are passed over from now on"),
		},
	}
	if naming > 0 {
		ask.Consequences[2].Tone = ui.Bad
	}
	return ask, err
}
