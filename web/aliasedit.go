package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// aliasPage is an alias's form.
type aliasPage struct {
	workspace
	form
	ID, Name string // "" of a new one
	Action   string
	Through  []ui.Option // by what a candidate may be reached
	Known    []string    // models that provider keys serve
}

// candidateRow is a candidate as a row of the form.
type candidateRow struct {
	Model, Through, Weight ui.Input
	SharedName             string
	Shared, First, Last    bool
	N                      int
}

// Rows are the candidates that were sent, and at least one.
func (v aliasPage) Rows() (out []candidateRow) {
	n := max(1, v.rows("candidates", "model"))
	for i := range n {
		in := func(member, says string) ui.Input {
			x := v.input(row("candidates", i, member), "")
			x.Label2 = "Candidate " + strconv.Itoa(i+1) + ", " + says
			return x
		}
		r := candidateRow{
			Model: in("model", "model"), Through: in("through", "through which key"), Weight: in("weight", "weight"),
			SharedName: row("candidates", i, "shared"), Shared: v.Get(row("candidates", i, "shared")) != "", First: i == 0, Last: i == n-1, N: i,
		}
		for _, member := range []string{"provider", "provider_key", "pool"} {
			if said := v.Error(row("candidates", i, member)); said != "" {
				r.Through.Error = said
			}
		}
		if said := v.Error(row("candidates", i, "priority")); said != "" {
			r.Weight.Error = said
		}
		r.Model.Class, r.Model.Placeholder, r.Model.List = "mono", "gpt-4o", "known-models"
		r.Weight.Class, r.Weight.InputMode, r.Weight.Placeholder = "num", "numeric", "1"
		r.Through.Options = ui.Choose(r.Through.Value, append([]ui.Option{}, v.Through...)...)
		out = append(out, r)
	}
	return out
}

func (p *Pages) newAlias(c echo.Context, who auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.Set("name", c.QueryParam("model"))
	f.Set(row("candidates", 0, "model"), c.QueryParam("model"))
	return p.showAlias(c, who, w, tenants.Alias{}, f, http.StatusOK)
}

func (p *Pages) showAlias(c echo.Context, who auth.Person, w workspace, a tenants.Alias, f form, status int) error {
	v := aliasPage{workspace: w, form: f, Name: a.Name, Action: "/models/aliases"}
	if a.Name != "" {
		v.ID = id.Alias.Format(a.ID)
		v.Action += "/" + v.ID
	}
	var err error
	if v.Through, v.Known, err = p.candidateChoices(c.Request().Context(), who.Tenant, a); err != nil {
		return err
	}
	return show(c, status, aliasEditView(v))
}

// candidateChoices are by what a candidate may be reached, and the models that
// there are. What an alias names that is gone stays a choice, until it is
// changed.
func (p *Pages) candidateChoices(ctx context.Context, tenant uuid.UUID, a tenants.Alias) (through []ui.Option, known []string, err error) {
	keys, err := p.tenants.ProviderKeys(ctx, tenant, uuid.Nil, 100)
	if err != nil {
		return nil, nil, err
	}
	pools, err := p.tenants.Pools(ctx, tenant, uuid.Nil, 100)
	if err != nil {
		return nil, nil, err
	}
	through = []ui.Option{{Label: "any key that has it"}}
	var providers []string
	for _, k := range keys.Items {
		if !slices.Contains(providers, k.Provider) {
			providers = append(providers, k.Provider)
		}
		known = append(known, k.Models...)
	}
	slices.Sort(providers)
	for _, x := range providers {
		through = append(through, ui.Option{Value: x, Label: "any key of " + providerName(x)})
	}
	for _, x := range pools.Items {
		through = append(through, ui.Option{Value: id.Pool.Format(x.ID), Label: "pool " + x.Name})
	}
	for _, x := range keys.Items {
		through = append(through, ui.Option{Value: id.ProviderKey.Format(x.ID), Label: "key " + x.Name})
	}
	for _, x := range a.Candidates {
		value := throughOf(x)
		if !slices.ContainsFunc(through, func(o ui.Option) bool { return o.Value == value }) {
			label := x.Named.Name
			if x.Named.Gone {
				label += " (removed)"
			}
			if label == "" {
				label = "any key of " + providerName(x.Provider)
			}
			through = append(through, ui.Option{Value: value, Label: label})
		}
	}
	slices.Sort(known)
	return through, slices.Compact(known), nil
}

// throughOf is by what a candidate is reached, as the form's choice says it.
func throughOf(c tenants.AliasCandidate) string {
	switch {
	case c.Key != uuid.Nil:
		return id.ProviderKey.Format(c.Key)
	case c.Pool != uuid.Nil:
		return id.Pool.Format(c.Pool)
	}
	return c.Provider
}

// aliasForm is an alias as its form shows it.
func aliasForm(a tenants.Alias) form {
	f := form{Values: url.Values{"name": {a.Name}, "description": {a.Description}}}
	if a.Sticky {
		f.Set("sticky", "true")
	}
	for i, c := range a.Candidates {
		f.Set(row("candidates", i, "model"), c.Model)
		f.Set(row("candidates", i, "through"), throughOf(c))
		if c.Weight > 1 {
			f.Set(row("candidates", i, "weight"), strconv.Itoa(c.Weight))
		}
		if i > 0 && a.Candidates[i-1].Priority == c.Priority {
			f.Set(row("candidates", i, "shared"), "true")
		}
	}
	return f
}

// candidates reads the rows that name a model, and which row each came from.
func (f *form) candidates() (list []tenants.AliasCandidate, from []int) {
	priority := 0
	for i := range f.rows("candidates", "model") {
		c := tenants.AliasCandidate{Model: strings.TrimSpace(f.Get(row("candidates", i, "model"))), Weight: 1}
		if c.Model == "" {
			continue
		}
		switch through := f.Get(row("candidates", i, "through")); {
		case strings.HasPrefix(through, string(id.ProviderKey)+"_"):
			c.Key, _ = id.ProviderKey.Parse(through)
		case strings.HasPrefix(through, string(id.Pool)+"_"):
			c.Pool, _ = id.Pool.Parse(through)
		default:
			c.Provider = through
		}
		if strings.TrimSpace(f.Get(row("candidates", i, "weight"))) != "" {
			if c.Weight = int(f.whole(row("candidates", i, "weight"))); c.Weight == 0 {
				c.Weight = -1 // refused where it is checked
			}
		}
		if priority == 0 || f.Get(row("candidates", i, "shared")) == "" {
			priority++
		}
		c.Priority = priority
		list, from = append(list, c), append(from, i)
	}
	return list, from
}

// candidateMembers are what a row of the form holds.
var candidateMembers = []string{"model", "through", "weight", "shared"}

// arrange does what a button beside a row says: "add", "up.1", "down.0" or
// "remove.2". It is false for any other.
func (f *form) arrange(do string) bool {
	what, which, _ := strings.Cut(do, ".")
	n := f.rows("candidates", "model")
	i, err := strconv.Atoi(which)
	if what != "add" && (err != nil || i < 0 || i >= n) {
		return false
	}
	f.Wrong = nil
	switch what {
	case "add":
		if n < tenants.MaxCandidates {
			f.Set(row("candidates", n, "model"), "")
		}
	case "up":
		f.swap(i-1, i)
	case "down":
		f.swap(i, i+1)
	case "remove":
		for ; i < n-1; i++ {
			f.swap(i, i+1)
		}
		for _, m := range candidateMembers {
			f.Del(row("candidates", n-1, m))
		}
	default:
		return false
	}
	return true
}

// swap exchanges two rows; one that is not there leaves them.
func (f *form) swap(i, j int) {
	if i < 0 || !f.Has(row("candidates", j, "model")) {
		return
	}
	for _, m := range candidateMembers {
		a, b := f.Values[row("candidates", i, m)], f.Values[row("candidates", j, m)]
		f.Values[row("candidates", i, m)], f.Values[row("candidates", j, m)] = b, a
	}
}

func (p *Pages) addAlias(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	return p.saveAlias(c, who, w, tenants.Alias{}, f, "alias-added", func(n tenants.NewAlias) error {
		_, err := p.tenants.AddAlias(asPerson(c, who), who.Tenant, n)
		return err
	})
}

// editAlias shows an alias's form, and a POST changes it.
func (p *Pages) editAlias(c echo.Context, who auth.Person, w workspace) error {
	a, err := p.aliasOf(c, who)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.showAlias(c, who, w, a, aliasForm(a), http.StatusOK)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	return p.saveAlias(c, who, w, a, f, "alias-changed", func(n tenants.NewAlias) error {
		_, err := p.tenants.ChangeAlias(asPerson(c, who), who.Tenant, a.ID, tenants.AliasChange{Name: &n.Name, Description: &n.Description, Sticky: &n.Sticky, Candidates: &n.Candidates})
		return err
	})
}

// saveAlias stores what was typed, or shows the form again.
func (p *Pages) saveAlias(c echo.Context, who auth.Person, w workspace, a tenants.Alias, f form, what string, save func(tenants.NewAlias) error) error {
	if f.arrange(f.Get("do")) {
		return p.showAlias(c, who, w, a, f, http.StatusOK)
	}
	list, from := f.candidates()
	status := http.StatusBadRequest
	if len(f.Wrong) == 0 {
		err := save(tenants.NewAlias{
			Name: strings.TrimSpace(f.Get("name")), Description: strings.TrimSpace(f.Get("description")), Sticky: f.Get("sticky") != "", Candidates: list,
		})
		if err == nil {
			p.directory.RoutesChanged(who.Tenant)
			return done(c, "/models", what)
		}
		if status, err = f.refuse(rowed(err, "candidates", from)); err != nil {
			return err
		}
	}
	return p.showAlias(c, who, w, a, f, status)
}

func (p *Pages) aliasOf(c echo.Context, who auth.Person) (tenants.Alias, error) {
	alias, err := param(c, id.Alias, "alias")
	if err != nil {
		return tenants.Alias{}, err
	}
	return p.tenants.Alias(c.Request().Context(), who.Tenant, alias)
}

// removeAlias asks before an alias is forgotten, and POST forgets it.
func (p *Pages) removeAlias(c echo.Context, who auth.Person, w workspace) error {
	a, err := p.aliasOf(c, who)
	if err != nil {
		return err
	}
	ask, err := p.aliasRemoval(c.Request().Context(), w, a)
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
	if f.Get("word") != a.Name {
		return p.askAgain(c, w, ask, f)
	}
	if err := p.tenants.RemoveAlias(asPerson(c, who), who.Tenant, a.ID); err != nil {
		return err
	}
	p.directory.RoutesChanged(who.Tenant)
	return done(c, "/models", "alias-removed")
}

// aliasRemoval says what the end of an alias means, in numbers.
func (p *Pages) aliasRemoval(ctx context.Context, w workspace, a tenants.Alias) (ui.Confirm, error) {
	at := "/models/aliases/" + id.Alias.Format(a.ID)
	ask := ui.Confirm{
		Title: "Remove " + a.Name + "?", Text: "The name stays in the books. Keys and plans that name it are left as they are.",
		Action: at + "/remove", Back: at, Keep: "Keep it", Do: "Remove " + a.Name, Word: a.Name, Typed: ui.Input{Name: "word"},
	}
	supply, err := p.supply(ctx, w.Tenant.ID)
	if err != nil {
		return ask, err
	}
	today, err := p.usedByName(ctx, w, usage.Filter{})
	if err != nil {
		return ask, err
	}
	n := today[a.Name].Requests + today[a.Name].Refused
	plain, _ := tenants.Targets(nil, supply.routes, a.Name)
	ask.Consequences = []ui.Consequence{
		ui.Consequence{Tone: ui.Bad}.Of(n, "call asked for it today; the next one is answered with 404, model_not_found", "calls asked for it today; the next one is answered with 404, model_not_found"),
		ui.Consequence{}.Of(int64(len(a.Candidates)), "candidate stays what it is, under its own name", "candidates stay what they are, under their own names"),
	}
	if len(plain) > 0 {
		ask.Consequences[0] = ui.Consequence{Tone: ui.Warn}.Of(n, "call asked for it today; the next one goes to the provider’s model of this name", "calls asked for it today; the next one goes to the provider’s model of this name")
	}
	return ask, nil
}

func (v aliasPage) title() string {
	if v.ID == "" {
		return "New alias"
	}
	return "Change " + v.Name
}

func (v aliasPage) escaped() string { return url.QueryEscape(v.Name) }
