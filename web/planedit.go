package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// planEditPage is the form of a plan's draft, with what it says beside it.
type planEditPage struct {
	workspace
	form
	ID, Plan string // "" a new plan
	Action   string
	Said     saidView
}

// saidView is what a draft says. Where it cannot be said yet, Wrong tells why.
type saidView struct {
	Sentence string
	Fine     []string
	Capacity capacityView
	Wrong    string

	limits []limits.Limit
}

// A new plan starts from a plausible allowance of the middle.
const (
	startRequests = 500
	startTokens   = 200_000
)

func (p *Pages) newPlan(c echo.Context, _ auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.put(0, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: startRequests})
	f.put(1, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: startTokens})
	f.put(2, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay})
	f.Set(row("limits", 2, "amount"), "")
	f.Set(row("prices", 0, "class"), "input")
	f.Set(row("prices", 1, "class"), "output")
	return p.showPlanEdit(c, planEditPage{workspace: w, form: f, Action: "/plans"}, http.StatusOK)
}

// editPlan is the form of a plan's draft, or of its next version.
func (p *Pages) editPlan(c echo.Context, who auth.Person, w workspace) error {
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
	f := form{Values: url.Values{}}
	f.putVersion(versions[0])
	f.Set("based", versions[0].Tag())
	return p.showPlanEdit(c, planEditPage{workspace: w, form: f, ID: c.Param("id"), Plan: x.Name, Action: "/plans/" + c.Param("id")}, http.StatusOK)
}

func (p *Pages) showPlanEdit(c echo.Context, v planEditPage, status int) error {
	v.Said = p.sayPlan(c, v)
	return show(c, status, planEditView(v))
}

// say is what the form says now. What is not right yet is left to its field.
func (v planEditPage) say() saidView {
	quiet := form{Values: v.Values}
	n, _, _ := quiet.version(v.Tenant.Currency)
	if len(quiet.Wrong) > 0 {
		return saidView{Wrong: quiet.Wrong[0].Message}
	}
	n, err := n.Checked(v.Tenant.Currency)
	if err != nil {
		return saidView{Wrong: firstOf(err)}
	}
	return saidView{Sentence: sentence(n.Limits), Fine: billing.FinePrint(n.Limits, n.CapOutput, v.Tenant.Zone), limits: n.Limits}
}

// sayPlan is say with the capacity check.
func (p *Pages) sayPlan(c echo.Context, v planEditPage) saidView {
	s := v.say()
	if s.Wrong == "" {
		s.Capacity = p.planCapacity(c, v.Tenant.ID, v.ID, s.limits)
	}
	return s
}

// previewPlan says what the form says, while one types.
func (p *Pages) previewPlan(c echo.Context, _ auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, saidPart(p.sayPlan(c, planEditPage{workspace: w, form: f, ID: f.Get("plan")})))
}

// addPlan makes a plan with its first draft.
func (p *Pages) addPlan(c echo.Context, who auth.Person, w workspace) error {
	return p.savePlan(c, planEditPage{workspace: w, Action: "/plans"}, func(f form, n billing.NewVersion) (string, error) {
		x, err := p.billing.AddPlan(asPerson(c, who), who.Tenant, f.Get("name"), n)
		return id.Plan.Format(x.ID), err
	})
}

// saveDraft keeps the draft of a plan.
func (p *Pages) saveDraft(c echo.Context, who auth.Person, w workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	x, err := p.billing.Plan(c.Request().Context(), who.Tenant, plan)
	if err != nil {
		return err
	}
	v := planEditPage{workspace: w, ID: c.Param("id"), Plan: x.Name, Action: "/plans/" + c.Param("id")}
	return p.savePlan(c, v, func(f form, n billing.NewVersion) (string, error) {
		_, err := p.billing.SaveDraft(asPerson(c, who), who.Tenant, plan, f.Get("based"), n)
		if err != nil && fault.Of(err).Code == "version_changed" {
			err = errors.Join(err, p.rebase(c.Request().Context(), who.Tenant, plan, f))
		}
		return c.Param("id"), err
	})
}

// rebase makes the form say that it has seen what somebody else saved: sent once
// more, it takes that one's place.
func (p *Pages) rebase(ctx context.Context, tenant, plan uuid.UUID, f form) error {
	versions, err := p.billing.Versions(ctx, tenant, plan)
	if err == nil {
		f.Set("based", versions[0].Tag())
	}
	return err
}

func (p *Pages) savePlan(c echo.Context, v planEditPage, save func(f form, n billing.NewVersion) (string, error)) error {
	var err error
	if v.form, err = typed(c); err != nil {
		return err
	}
	switch v.Get("do") {
	case "row":
		v.form = v.another()
		return p.showPlanEdit(c, v, http.StatusOK)
	case "price":
		v.Set(row("prices", v.rows("prices", "price"), "price"), "")
		return p.showPlanEdit(c, v, http.StatusOK)
	case "preview":
		return p.showPlanEdit(c, v, http.StatusOK)
	}
	n, limitRows, priceRows := v.version(v.Tenant.Currency)
	if len(v.Wrong) > 0 {
		if v.ID == "" {
			for _, x := range tenants.CheckName("/name", v.Get("name")) {
				v.Wrong = append([]ui.Wrong{{Name: "name", Message: x.Message}}, v.Wrong...)
			}
		}
		return p.showPlanEdit(c, v, http.StatusBadRequest)
	}
	plan, err := save(v.form, n)
	if err != nil {
		status, err := v.refuse(rowed(rowed(err, "limits", limitRows), "prices", priceRows))
		if err != nil {
			return err
		}
		return p.showPlanEdit(c, v, status)
	}
	return done(c, "/plans/"+plan, "plan-saved")
}

func planTitle(plan string) string {
	if plan == "" {
		return "New plan"
	}
	return plan + ", draft"
}

// back is where the form was come to from.
func (v planEditPage) back() string {
	if v.ID == "" {
		return "/plans"
	}
	return "/plans/" + v.ID
}
