package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// newKeyPage is the form of a key, of a customer or for management.
type newKeyPage struct {
	workspace
	form
	Management bool
	Customers  []ui.Option
	More       bool // there are customers that the choice does not offer
	Narrow     bool // the narrowing fields are open
}

// madePage shows a secret, this once.
type madePage struct {
	workspace
	Key         tenants.IssuedKey
	Customer    string
	Sentence    string
	NoPlan      bool
	CustomerURL string
	Tabs        []ui.Tab
	Old         string    // the key that it takes over from; "" none
	OldEnds     time.Time // when the old one stops working
}

// formLife is how long a form to make a key is good: a later one is asked again.
const formLife = 24 * time.Hour

func (p *Pages) newKeyPage(c echo.Context, who auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.Set("customer", c.QueryParam("customer"))
	f.Set("test", "false")
	f.put(0, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute})
	f.put(1, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute})
	f.put(2, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay})
	for i := range 3 {
		f.Set(row("limits", i, "amount"), "")
	}
	return p.showNewKey(c, who, w, f, http.StatusOK, false)
}

func (p *Pages) newManagementKeyPage(c echo.Context, who auth.Person, w workspace) error {
	return p.showNewKey(c, who, w, form{Values: url.Values{}}, http.StatusOK, true)
}

func (p *Pages) showNewKey(c echo.Context, who auth.Person, w workspace, f form, status int, management bool) error {
	view := newKeyPage{workspace: w, form: f, Management: management}
	if f.Get("once") == "" {
		f.Set("once", id.APIKey.Format(id.At(p.now())))
	}
	for _, name := range []string{"models", "ip_allow", "expires_at"} {
		view.Narrow = view.Narrow || f.Get(name) != "" || f.Error(name) != ""
	}
	for _, r := range f.limitRows(0) {
		view.Narrow = view.Narrow || r.Amount.Value != ""
	}
	if !management {
		page, err := p.tenants.Customers(c.Request().Context(), who.Tenant, uuid.Nil, 100)
		if err != nil {
			return err
		}
		view.More = page.Next != uuid.Nil
		view.Customers = customerOptions(page.Items, f.Get("customer"))
		if err := p.offer(c, who, &view); err != nil {
			return err
		}
	}
	return show(c, status, newKeyView(view))
}

func customerOptions(list []tenants.Customer, chosen string) (out []ui.Option) {
	for _, x := range list {
		value := id.Customer.Format(x.ID)
		out = append(out, ui.Option{Value: value, Label: x.Name, Chosen: value == chosen})
	}
	return out
}

// offer adds the chosen customer to the choice where it is none of the newest.
func (p *Pages) offer(c echo.Context, who auth.Person, v *newKeyPage) error {
	customer, malformed := id.Customer.Parse(v.Get("customer"))
	if malformed != nil || slices.ContainsFunc(v.Customers, func(o ui.Option) bool { return o.Chosen }) {
		return nil //nolint:nilerr // what is no id chooses nobody
	}
	x, err := p.tenants.Customer(c.Request().Context(), who.Tenant, customer)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	v.Customers = append(customerOptions([]tenants.Customer{x}, v.Get("customer")), v.Customers...)
	return err
}

// makeKey makes a customer's key and shows its secret.
func (p *Pages) makeKey(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	customer, _ := id.Customer.Parse(f.Get("customer"))
	list, from := f.limits()
	n := tenants.NewAPIKey{
		ID: f.once(p.now()), Kind: tenants.ForCustomer, Customer: customer, Name: f.Get("name"), Test: f.Get("test") == "true",
		MaySettle: f.Get("may_settle") != "", Models: f.words("models"), IPAllow: f.prefixes(), Limits: list, ExpiresAt: f.lastDay(w.Now.Location()),
	}
	return p.finishKey(c, who, w, f, n, from)
}

// makeManagementKey makes a management key and shows its secret.
func (p *Pages) makeManagementKey(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	for _, s := range f.Values["scopes"] {
		if !grants(w, s) {
			f.wrong("scopes", "Your role here is "+w.Role+", which does not reach "+s+". A key reaches no further than who makes it; ask an owner.")
		}
	}
	n := tenants.NewAPIKey{
		ID: f.once(p.now()), Kind: tenants.Management, Name: f.Get("name"), Scopes: f.Values["scopes"],
		IPAllow: f.prefixes(), ExpiresAt: f.lastDay(w.Now.Location()),
	}
	return p.finishKey(c, who, w, f, n, nil)
}

func (p *Pages) finishKey(c echo.Context, who auth.Person, w workspace, f form, n tenants.NewAPIKey, from []int) error {
	management := n.Kind == tenants.Management
	if len(f.Wrong) > 0 {
		for _, x := range tenants.CheckName("/name", n.Name) {
			f.Wrong = append([]ui.Wrong{{Name: "name", Message: x.Message}}, f.Wrong...)
		}
		return p.showNewKey(c, who, w, f, http.StatusBadRequest, management)
	}
	k, err := p.tenants.AddAPIKey(asPerson(c, who), who.Tenant, n)
	if fault.Is(err, fault.NotFound) {
		f.wrong("customer", "There is no such customer.")
		return p.showNewKey(c, who, w, f, http.StatusBadRequest, management)
	}
	if fault.Of(err) != nil && fault.Of(err).Code == "already_made" {
		return show(c, http.StatusConflict, alreadyMadeView(w, n.Name))
	}
	if err != nil {
		status, err := f.refuse(rowed(err, "limits", from))
		if err != nil {
			return err
		}
		return p.showNewKey(c, who, w, f, status, management)
	}
	view, err := p.made(c, who, w, k)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, madeView(view))
}

func (p *Pages) made(c echo.Context, who auth.Person, w workspace, k tenants.IssuedKey) (madePage, error) {
	v := madePage{workspace: w, Key: k}
	if k.Kind == tenants.Management {
		v.Tabs = lookTabs(p.publicURL, k.Secret)
		return v, nil
	}
	ctx := c.Request().Context()
	v.CustomerURL = "/customers/" + id.Customer.Format(k.Customer)
	v.Tabs = callTabs(p.publicURL, k.Secret, p.modelFor(ctx, who.Tenant, k.APIKey))
	contract, err := p.billing.ContractOf(ctx, who.Tenant, k.Customer)
	v.Customer, v.NoPlan = contract.Customer.Name, contract.Subscription == uuid.Nil
	if !v.NoPlan {
		v.Sentence = sentence(contract.Version.Limits)
	}
	return v, err
}

// once is the id that the key of this very form gets, so that a form that is
// sent again makes no second key.
func (f *form) once(now time.Time) uuid.UUID {
	u, err := id.APIKey.Parse(f.Get("once"))
	if age := now.Sub(id.Time(u)); err != nil || age < -time.Minute || age > formLife {
		f.Del("once")
		f.wrong("", "This form was open for more than a day. Look at it once more, and send it again.")
		return uuid.Nil
	}
	return u
}

// prefixes reads the addresses that a key may be used from; nil is all of them.
func (f *form) prefixes() (out []netip.Prefix) {
	for _, s := range f.words("ip_allow") {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		x, err := netip.ParsePrefix(s)
		if err != nil || x.Masked() != x {
			f.wrong("ip_allow", fmt.Sprintf("%.40q is not an address or a range such as 203.0.113.0/24.", s))
			return nil
		}
		out = append(out, x)
	}
	return out
}

// lastDay is the end of the day that was typed; nil where none was.
func (f *form) lastDay(zone *time.Location) *time.Time {
	s := f.Get("expires_at")
	if s == "" {
		return nil
	}
	day, err := time.ParseInLocation(time.DateOnly, s, zone)
	if err != nil {
		f.wrong("expires_at", "This is not a day such as 2027-01-31.")
		return nil
	}
	end := limits.DayEnd(day.Add(12*time.Hour), zone)
	return &end
}

// grants tells whether a person's role reaches a scope that a key would have.
func grants(w workspace, scope string) bool {
	return w.May(changeTenant) || scope != "tenant:write" && scope != "*"
}

// scopeWords is a key's scopes as a person reads them.
func scopeWords(scopes string) string {
	if scopes == "*" {
		return "everything"
	}
	return scopes
}

// scopeOptions are the scopes to tick, as far as the person's role reaches.
func scopeOptions(w workspace, f form) (out []ui.Option) {
	for _, s := range tenants.Scopes {
		if !grants(w, s) {
			continue
		}
		o := ui.Option{Value: s, Label: s, Chosen: f.picked("scopes", s)}
		if s == "*" {
			o.Label, o.Hint, o.Whole = scopeWords(s), "what later releases add too", true
		}
		out = append(out, o)
	}
	return out
}
