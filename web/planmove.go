package web

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	"weir/web/ui"
)

// planMovePage is the way of everybody on older versions of a plan to its
// published one.
type planMovePage struct {
	workspace
	form
	ID, Plan, Says string
	Rows           []movingRow
	Left           []string
	Total          string
	Token          string
	Over           int64 // how many are over a new cap now
}

type movingRow struct {
	ID, Name, From, Amount string
	Ticked                 bool
	Over                   []string
}

func (p *Pages) movePage(c echo.Context, who auth.Person, w workspace) error {
	return p.showMove(c, who, w, form{Values: c.QueryParams()}, http.StatusOK)
}

func (p *Pages) showMove(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	m := billing.ManyMove{Plan: plan, When: billing.When(f.Get("at"))}
	for _, text := range f.Values["customer"] {
		if customer, err := id.Customer.Parse(text); err == nil {
			m.Customers = append(m.Customers, customer)
		}
	}
	v := planMovePage{workspace: w, form: f, ID: c.Param("id")}
	many, err := p.billing.PreviewMany(c.Request().Context(), who.Tenant, m)
	if err != nil {
		if status, err = v.refuse(err); err != nil {
			return err
		}
		return show(c, status, planMoveView(v))
	}
	v.Plan, v.Says, v.Token, v.Total = many.To.Plan, sentence(many.To.Version.Limits), many.Token, signedAmount(many.TotalMinor, many.Currency)
	for _, x := range many.Left {
		v.Left = append(v.Left, x.Name+": "+x.Why)
	}
	for _, x := range many.Moves {
		r := movingRow{ID: id.Customer.Format(x.Customer), Name: x.Name, From: "version " + ui.Count(int64(x.Number)), Amount: signedAmount(x.TotalMinor, x.Currency), Ticked: len(m.Customers) > 0}
		used, err := p.usedOf(c, who, x.After)
		if err != nil {
			return err
		}
		for _, u := range used {
			if u.Over {
				r.Over = append(r.Over, u.Name+": "+u.Used+" of "+u.Limit)
			}
		}
		if len(r.Over) > 0 {
			v.Over++
		}
		v.Rows = append(v.Rows, r)
	}
	return show(c, status, planMoveView(v))
}

// moveAll carries out what was shown.
func (p *Pages) moveAll(c echo.Context, who auth.Person, w workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if _, err = p.billing.MoveMany(asPerson(c, who), who.Tenant, plan, f.Get("token")); err == nil {
		return done(c, "/plans/"+c.Param("id"), "many-moved")
	}
	again := form{Values: url.Values{"at": f.Values["at"], "customer": f.Values["customer"]}}
	status, err := again.refuse(err)
	if err != nil {
		return err
	}
	return p.showMove(c, who, w, again, status)
}

// retirePage asks before a plan goes out of the offer, and POST does it.
func (p *Pages) retirePage(c echo.Context, who auth.Person, w workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	x, err := p.billing.Plan(c.Request().Context(), who.Tenant, plan)
	if err != nil {
		return err
	}
	at := "/plans/" + c.Param("id")
	if c.Request().Method == http.MethodPost {
		if _, err := p.billing.Retire(asPerson(c, who), who.Tenant, plan); err != nil {
			return err
		}
		return done(c, at, "plan-retired")
	}
	on, err := p.billing.Subscribed(c.Request().Context(), who.Tenant)
	if err != nil {
		return err
	}
	return p.ask(c, w, ui.Confirm{
		Title: "Retire " + x.Name + "?", Text: "Nobody is put on it any more. A later version is offered again by publishing it.",
		Action: at + "/retire", Back: at, Keep: "Keep offering it", Do: "Retire it",
		Consequences: []ui.Consequence{ui.Consequence{}.Of(on[x.Version.ID], "customer stays on it, as it is", "customers stay on it, as it is")},
	})
}

// comparePage is two versions side by side.
type comparePage struct {
	workspace
	ID, Plan       string
	From, To       int
	Before, After  string // the sentences
	Limits, Prices []comparedRow
	Terms          []comparedRow
	Numbers        []ui.Option
}

type comparedRow struct {
	Name, Before, After string
	Changed             bool
}

func (p *Pages) compare(c echo.Context, who auth.Person, w workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	x, err := p.billing.Plan(c.Request().Context(), who.Tenant, plan)
	if err != nil {
		return err
	}
	versions, err := p.billing.Versions(c.Request().Context(), who.Tenant, plan)
	if err != nil {
		return err
	}
	if len(versions) == 1 { // there is none to compare it with
		return c.Redirect(http.StatusSeeOther, "/plans/"+c.Param("id"))
	}
	to := versionNumbered(versions, c.QueryParam("to"), versions[0].Number)
	from := versionNumbered(versions, c.QueryParam("from"), max(1, to.Number-1))
	if from.Number == to.Number {
		return c.Redirect(http.StatusSeeOther, "/plans/"+c.Param("id")+"/compare") // the newest with the one before
	}
	return show(c, http.StatusOK, compareView(compareOf(w, c.Param("id"), x.Name, billing.Compare(from, to))))
}

// versionNumbered is the version of a number that was given as text; one that is
// not there is that of absent.
func versionNumbered(versions []billing.Version, text string, absent int) billing.Version {
	found := versions[len(versions)-1]
	for _, v := range versions {
		switch ui.Count(int64(v.Number)) {
		case text:
			return v
		case ui.Count(int64(absent)):
			found = v
		}
	}
	return found
}

func compareOf(w workspace, plan, name string, c billing.Comparison) comparePage {
	v := comparePage{workspace: w, ID: plan, Plan: name, From: c.From.Number, To: c.To.Number, Before: sentence(c.From.Limits), After: sentence(c.To.Limits)}
	for _, p := range c.Limits {
		r := comparedRow{Changed: p.Changed(billing.SameLimit)}
		for _, l := range []struct {
			at *string
			of bool
		}{{&r.Before, true}, {&r.After, false}} {
			x := p.After
			if l.of {
				x = p.Before
			}
			if x != nil {
				r.Name = limitName(*x)
				*l.at = ui.Count(x.Amount)
			}
		}
		v.Limits = append(v.Limits, r)
	}
	if !w.May(seeMoney) {
		return v
	}
	for _, p := range c.Prices {
		r := comparedRow{Changed: p.Changed(billing.SamePrice)}
		if p.Before != nil {
			r.Name, r.Before = modelsWords(p.Before.Models)+", "+classWords(p.Before.Class), lineWords(*p.Before)
		}
		if p.After != nil {
			r.Name, r.After = modelsWords(p.After.Models)+", "+classWords(p.After.Class), lineWords(*p.After)
		}
		v.Prices = append(v.Prices, r)
	}
	for _, r := range []comparedRow{
		{Name: "Base fee a month", Before: signedAmount(c.From.BaseFee, c.From.Currency), After: signedAmount(c.To.BaseFee, c.To.Currency)},
		{Name: "Minimum a month", Before: signedAmount(c.From.Minimum, c.From.Currency), After: signedAmount(c.To.Minimum, c.To.Currency)},
		{Name: "Trial days", Before: ui.Count(int64(c.From.TrialDays)), After: ui.Count(int64(c.To.TrialDays))},
	} {
		r.Changed = r.Before != r.After
		v.Terms = append(v.Terms, r)
	}
	return v
}

// standeeRow is a customer that is on a plan.
type standeeRow struct {
	ID, Name, Version, Status string
	Tone                      ui.Tone
}

const standeesShown = 25

func (p *Pages) standees(c echo.Context, who auth.Person, plan uuid.UUID) (out []standeeRow, more bool, err error) {
	page, err := p.billing.OnPlan(c.Request().Context(), who.Tenant, plan, uuid.Nil, standeesShown)
	for _, x := range page.Items {
		words := standingWords[x.Status]
		out = append(out, standeeRow{id.Customer.Format(x.Customer), x.Name, "version " + ui.Count(int64(x.Number)), words.words, words.tone})
	}
	return out, page.Next != uuid.Nil, err
}
