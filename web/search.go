package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// search is what GET /search found; the page, or its part in the palette.
type search struct {
	workspace
	Text   string
	Groups []hits
	Count  int
	Failed []string // what could not be looked through
}

// hits are what was found of one kind.
type hits struct {
	Title string
	Hits  []hit
}

// hit is one thing to go to or to do. With Post, it is sent, not opened.
type hit struct {
	Icon, Words, About string
	Href, Post         string
	Theme              bool // switches the theme, in the browser alone
}

// paletteTarget is the id of where the palette shows what was found.
const paletteTarget = "palette-found"

// mostHits is how many of a kind are shown.
const mostHits = 6

// deeds are what may be done from anywhere, in the order of a first day.
var deeds = []struct {
	hit
	Needs right
}{
	{hit{Icon: "plus", Words: "New plan", Href: "/plans/new"}, changePlans},
	{hit{Icon: "plus", Words: "New customer", Href: "/customers/new"}, changeCustomers},
	{hit{Icon: "plus", Words: "New API key", Href: "/keys/new"}, seeCustomerKeys},
	{hit{Icon: "plus", Words: "New management key", Href: "/keys/new/management"}, seeManagementKeys},
	{hit{Icon: "plus", Words: "Add provider key", Href: "/providers/new"}, seeProviderKeys},
	{hit{Icon: "plus", Words: "New pool of provider keys", Href: "/providers/pools/new"}, seeProviderKeys},
	{hit{Icon: "plus", Words: "New model alias", Href: "/models/aliases/new"}, seeProviderKeys},
	{hit{Icon: "theme", Words: "Switch between light and dark", Theme: true}, ""},
	{hit{Icon: "out", Words: "Sign out", Post: "/sign-out"}, ""},
}

// maxSearch is the longest text that is searched for, in bytes.
const maxSearch = 200

// search answers GET /search?q=: pages, deeds and, once there is a text, what
// of the tenant's is called so, as far as the role sees it.
func (p *Pages) search(c echo.Context, _ auth.Person, w workspace) error {
	text := strings.TrimSpace(c.QueryParam("q"))
	s := search{workspace: w, Text: text[:min(len(text), maxSearch)]}
	s.Text = strings.ToValidUTF8(s.Text, "")
	s.add("Go to", p.pagesCalled(c.Request().Context(), s.Text))
	s.add("Do", p.deedsCalled(w, s.Text))
	if s.Text != "" {
		p.findThings(c, &s)
	}
	if partial(c) {
		return show(c, http.StatusOK, foundView(s))
	}
	return show(c, http.StatusOK, searchView(s))
}

func (s *search) add(title string, list []hit) {
	if len(list) > 0 {
		s.Groups, s.Count = append(s.Groups, hits{title, list}), s.Count+len(list)
	}
}

func (p *Pages) pagesCalled(ctx context.Context, text string) (out []hit) {
	for _, g := range aroundOf(ctx).Nav {
		for _, e := range g.Entries {
			if goesBy(e.Words+" "+g.Title, text) {
				out = append(out, hit{Icon: e.Icon, Words: e.Words, About: g.Title, Href: e.Path})
			}
		}
	}
	return out
}

func (p *Pages) deedsCalled(w workspace, text string) (out []hit) {
	for _, d := range deeds {
		if (d.Needs == "" || w.May(d.Needs)) && (d.Href == "" || p.mounted[d.Href]) && goesBy(d.Words, text) {
			out = append(out, d.hit)
		}
	}
	return out
}

// goesBy tells whether every word of text begins a word of name.
func goesBy(name, text string) bool {
	names := strings.Fields(strings.ToLower(name))
	for _, t := range strings.Fields(strings.ToLower(text)) {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, t) }) {
			return false
		}
	}
	return true
}

// findThings asks for each kind that the role sees. One that cannot be read
// costs its own hits only.
func (p *Pages) findThings(c echo.Context, s *search) {
	for _, k := range []struct {
		what string
		may  bool
		find func(context.Context, search) ([]hit, error)
	}{
		{"Requests", true, p.findRequest},
		{"Plans", true, p.findPlans},
		{"Customers", s.May(seeCustomers), p.findCustomerHits},
		{"API keys", s.May(seeCustomerKeys) || s.May(seeManagementKeys), p.findKeys},
		{"Provider keys", s.May(seeProviderKeys), p.findProviders},
		{"Models", s.May(seeModels), p.findModels},
	} {
		if !k.may {
			continue
		}
		found := tile(p, c, "search", func() ([]hit, error) { return k.find(c.Request().Context(), *s) })
		if found == nil {
			s.Failed = append(s.Failed, k.what)
			continue
		}
		s.add(k.what, *found)
	}
}

func (p *Pages) findRequest(ctx context.Context, s search) ([]hit, error) {
	e, err := p.requestOf(ctx, s.workspace, s.Text)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return []hit{{Icon: "requests", Words: s.Text, About: outcomeWords(e.Outcome), Href: "/requests/" + s.Text}}, err
}

func (p *Pages) findPlans(ctx context.Context, s search) (out []hit, err error) {
	exact, _ := id.Plan.Parse(s.Text)
	list, err := p.billing.FindPlans(ctx, s.Tenant.ID, s.Text, exact, mostHits)
	for _, x := range list {
		out = append(out, hit{Icon: "plans", Words: x.Name, About: "plan", Href: "/plans/" + id.Plan.Format(x.ID)})
	}
	return out, err
}

func (p *Pages) findCustomerHits(ctx context.Context, s search) (out []hit, err error) {
	exact, _ := id.Customer.Parse(s.Text)
	page, err := p.tenants.FindCustomers(ctx, s.Tenant.ID, s.Text, exact, uuid.Nil, mostHits)
	for _, x := range page.Items {
		h := hit{Icon: "customers", Words: x.Name, About: x.Email, Href: "/customers/" + id.Customer.Format(x.ID)}
		if x.SuspendedAt != nil {
			h.About = "suspended"
		}
		out = append(out, h)
	}
	return out, err
}

func (p *Pages) findKeys(ctx context.Context, s search) (out []hit, err error) {
	var kinds []tenants.KeyKind
	if s.May(seeCustomerKeys) {
		kinds = append(kinds, tenants.ForCustomer)
	}
	if s.May(seeManagementKeys) {
		kinds = append(kinds, tenants.Management)
	}
	exact, _ := id.APIKey.Parse(s.Text)
	list, err := p.tenants.FindAPIKeys(ctx, s.Tenant.ID, kinds, s.Text, exact, mostHits)
	if err != nil {
		return nil, err
	}
	owners := make([]uuid.UUID, len(list))
	for i, k := range list {
		owners[i] = k.Customer
	}
	names, err := p.labels(ctx, s.Tenant.ID, owners)
	for _, k := range list {
		h := hit{Icon: "keys", Words: k.Name + " …" + k.Last4, About: "management", Href: "/keys/" + id.APIKey.Format(k.ID)}
		if k.Kind == tenants.ForCustomer {
			h.About = names.name(id.Customer, k.Customer)
		}
		if state := k.Status(s.Now); state != "active" {
			h.About += ", " + state
		}
		out = append(out, h)
	}
	return out, err
}

func (p *Pages) findProviders(ctx context.Context, s search) (out []hit, err error) {
	exact, _ := id.ProviderKey.Parse(s.Text)
	list, err := p.tenants.FindProviderKeys(ctx, s.Tenant.ID, s.Text, exact, mostHits)
	for _, x := range list {
		out = append(out, hit{Icon: "providers", Words: x.Name, About: x.Provider, Href: "/providers/" + id.ProviderKey.Format(x.ID)})
	}
	return out, err
}

// Said is how many there are, for who does not see them.
func (s search) Said() string {
	if s.Count == 0 {
		return "Nothing found."
	}
	return ui.Of(int64(s.Count), "result", "results") + ". Enter opens the first: " + s.Groups[0].Hits[0].Words + "."
}
