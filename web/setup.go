package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// setupStep is one step of the first path, as it stands.
type setupStep struct {
	Name, Title   string
	Does          string // what the step is, in a line
	Says          string // what is there already
	Done, Skipped bool
	Mine          bool // the person may take it
}

// setupPage is the path from nothing to a call that was refused on purpose.
type setupPage struct {
	workspace
	form
	Steps     []setupStep
	Open      string // the step that is open; "" all are done or skipped
	Plans     []ui.Option
	Said      saidView
	Call      *usage.Event // the first that passed, or the newest that failed
	Refusal   *refusalStory
	Secret    string // shown this once
	Tabs      []ui.Tab
	Trip      string // the lines that run into a limit
	HasKey    bool
	MaySend   bool          // the page can make the call by itself
	Answer    *refusalStory // what came of it, as it came
	Offer     alertOffer
	LiveCheck string // what the provider's check had to say; "" it passed
}

// steps of the path, with what each needs.
var setupPath = []struct {
	name, title, does string
	needs             []right
}{
	{"provider", "Provider key", "Calls go out with it. It is checked live.", []right{seeProviderKeys}},
	{"plan", "Plan", "What a customer may use, as a sentence.", []right{changePlans}},
	{"key", "Customer and key", "Whom you serve, and what they call with.", []right{changeCustomers, changePlans, seeCustomerKeys}},
	{"call", "First call", "This page turns green when it arrives.", nil},
	{"refusal", "See a refusal", "So that you know what your customers will read.", []right{changeCustomers, seeCustomerKeys}},
	{"alert", "Set an alert", "You are told before a limit is spent.", []right{seeAlerts}},
}

func (p *Pages) mountSetup(e *echo.Echo) {
	p.get(e, "/setup", p.page("", p.setup))
	p.get(e, "/setup/call", p.page("", p.setupCall))
	p.get(e, "/setup/refused", p.page("", p.setupRefused))
	p.post(e, "/setup/provider", p.page(seeProviderKeys, p.setupProvider))
	p.post(e, "/setup/plan", p.page(changePlans, p.setupPlan))
	p.post(e, "/setup/key", p.page(changePlans, p.setupKey))
	p.post(e, "/setup/call", p.page(changeCustomers, p.setupSend))
	p.post(e, "/setup/trip", p.page(changeCustomers, p.setupTrip))
	p.post(e, "/setup/refusal", p.page(changeCustomers, p.setupRefusal))
	p.post(e, "/setup/alert", p.page(seeAlerts, p.setupAlert))
	p.post(e, "/setup/skip", p.page(changePlans, p.setupSkip))
}

// setup answers GET /setup: the step that is next, or the one asked for.
func (p *Pages) setup(c echo.Context, who auth.Person, w workspace) error {
	return p.showSetup(c, who, setupPage{workspace: w, Open: c.QueryParam("step")}, http.StatusOK)
}

func (p *Pages) showSetup(c echo.Context, _ auth.Person, v setupPage, status int) error {
	ctx := c.Request().Context()
	if err := p.readSetup(ctx, &v, p.setupCalls); err != nil {
		return err
	}
	if v.Values == nil {
		v.form = form{Values: url.Values{}}
	}
	switch v.Open {
	case "plan":
		v.startPlan()
		v.Said = planEditPage{workspace: v.workspace, form: v.form}.say()
	case "key":
		plans, err := p.publishedPlans(ctx, v.Tenant.ID, v.Get("plan"), uuid.Nil)
		if err != nil {
			return err
		}
		v.Plans = plans
		if v.Get("once") == "" {
			v.Set("once", id.APIKey.Format(id.At(p.now())))
		}
		if !v.Has("name") {
			v.Set("name", "Test customer")
		}
	case "call":
		if v.Get("once") == "" {
			v.Set("once", id.APIKey.Format(id.At(p.now())))
		}
		if v.Tabs == nil {
			v.Tabs = callTabs(p.publicURL, "PASTE_THE_KEY", p.modelFor(ctx, v.Tenant.ID, tenants.APIKey{}))
		}
	case "refusal":
		if v.Get("once") == "" {
			v.Set("once", id.APIKey.Format(id.At(p.now())))
		}
	case "alert":
		offer, err := p.offerAlert(ctx, v.workspace)
		if err != nil {
			return err
		}
		v.Offer = offer
		if !v.Has("threshold") {
			v.Set("threshold", ui.Count(startSpent))
		}
	}
	send, err := p.maySend(ctx, &v)
	if err != nil {
		return err
	}
	v.MaySend = send
	v.Del("secret")
	return show(c, status, setupView(v))
}

// startPlan fills a plan's form that was not typed into yet.
func (v setupPage) startPlan() {
	if v.Has(row("limits", 0, "amount")) {
		return
	}
	v.Set("name", "Starter")
	v.put(0, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: startRequests})
	v.put(1, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: startTokens})
}

// setupReader reads what is there of some steps, and says it of those done.
type setupReader func(ctx context.Context, v *setupPage, says map[string]string) error

// readSetup reads what is there already, and finds the step that is next.
func (p *Pages) readSetup(ctx context.Context, v *setupPage, calls setupReader) error {
	skipped, err := p.tenants.SetupState(ctx, v.Tenant.ID)
	if err != nil {
		return err
	}
	says := map[string]string{}
	for _, read := range []setupReader{p.setupSupply, p.setupSold, calls, p.setupTelling} {
		if err := read(ctx, v, says); err != nil {
			return err
		}
	}
	next := ""
	for _, s := range setupPath {
		step := setupStep{Name: s.name, Title: s.title, Does: s.does, Skipped: skipped[s.name], Mine: true}
		step.Says, step.Done = says[s.name]
		for _, r := range s.needs {
			step.Mine = step.Mine && v.May(r)
		}
		if next == "" && !step.Done && !step.Skipped {
			next = s.name
		}
		v.Steps = append(v.Steps, step)
	}
	if !slices.ContainsFunc(v.Steps, func(s setupStep) bool { return s.Name == v.Open }) {
		v.Open = next
	}
	return nil
}

// setupSupply reads the provider keys: a usable one, or the newest.
func (p *Pages) setupSupply(ctx context.Context, v *setupPage, says map[string]string) error {
	page, err := p.tenants.ProviderKeys(ctx, v.Tenant.ID, uuid.Nil, 25)
	if err != nil || len(page.Items) == 0 {
		return err
	}
	k := page.Items[0]
	for _, x := range page.Items {
		if x.Usable() {
			k = x
			break
		}
	}
	if !v.May(seeProviderKeys) {
		says["provider"] = "There is one."
		return nil
	}
	if k.Status != tenants.Active {
		v.LiveCheck = k.StatusReason
	}
	if k.Usable() {
		says["provider"] = k.Name + ", " + ui.Of(int64(len(k.Models)), "model", "models") + "."
	}
	return nil
}

// setupSold reads the plan and the key that a customer calls with.
func (p *Pages) setupSold(ctx context.Context, v *setupPage, says map[string]string) error {
	plans, err := p.billing.Plans(ctx, v.Tenant.ID, uuid.Nil, 100)
	if err != nil {
		return err
	}
	for _, x := range plans.Items {
		if _, found := says["plan"]; !found && x.Version.Status == billing.Published {
			says["plan"] = x.Name + ": " + sentence(x.Version.Limits) + "."
		}
	}
	k, found, err := p.setupCustomer(ctx, v.workspace)
	if err != nil || !found {
		return err
	}
	v.HasKey, says["key"] = true, "There is one."
	if v.May(seeCustomerKeys) {
		says["key"] = k.Name + " ••••" + k.Last4 + "."
	}
	return nil
}

// setupCustomer is the newest customer key that works and was not made to be
// refused.
func (p *Pages) setupCustomer(ctx context.Context, w workspace) (tenants.APIKey, bool, error) {
	page, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer}, uuid.Nil, 100)
	for _, k := range page.Items {
		if k.Status(w.Now) == "active" && k.Name != tripName && k.Name != sentName {
			return k, true, err
		}
	}
	return tenants.APIKey{}, false, err
}

// onPath tells whether the first path is still to be walked, by somebody who
// can. Once walked it stays so.
func (p *Pages) onPath(ctx context.Context, w workspace) (bool, error) {
	if !w.May(changePlans) && !w.May(changeCustomers) {
		return false, nil
	}
	skipped, err := p.tenants.SetupState(ctx, w.Tenant.ID)
	if err != nil || skipped["path"] {
		return false, err
	}
	v := setupPage{workspace: w}
	if err := p.readSetup(ctx, &v, p.setupSeen); err != nil || v.Open != "" {
		return v.Open != "", err
	}
	return false, p.tenants.FinishSetup(ctx, w.Tenant.ID)
}

// The waiting parts by themselves, as the page asks for them again.

func (p *Pages) setupCall(c echo.Context, _ auth.Person, w workspace) error {
	v := setupPage{workspace: w}
	if err := p.setupCalls(c.Request().Context(), &v, map[string]string{}); err != nil {
		return err
	}
	return show(c, http.StatusOK, setupCallView(v))
}

func (p *Pages) setupRefused(c echo.Context, _ auth.Person, w workspace) error {
	v := setupPage{workspace: w}
	if err := p.setupCalls(c.Request().Context(), &v, map[string]string{}); err != nil {
		return err
	}
	return show(c, http.StatusOK, setupRefusedView(v))
}
