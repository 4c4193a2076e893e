package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/web/ui"
)

// portalHome is a customer's own limits. A part that could not be read is nil.
type portalHomePage struct {
	visit
	Plan, Says          string // "" on no plan
	Stopped             bool   // its subscription is suspended
	Fine                []string
	Period              billing.Period
	Started             time.Time
	Levels              *[]ui.Level
	EachModel, EachUser string
}

// ownLimits are what customers may see of their limits: what holds, not what is
// only tried out.
func ownLimits(c billing.Contract) []limits.Limit {
	return slices.DeleteFunc(slices.Clone(c.Own), func(l limits.Limit) bool { return l.Mode == limits.ModeShadow })
}

func (p *Pages) readPortalHome(c echo.Context, v visit) (portalHomePage, error) {
	ctx := c.Request().Context()
	contract, err := p.billing.ContractOf(ctx, v.Visitor.Tenant, v.Customer)
	if err != nil {
		return portalHomePage{}, err
	}
	own := ownLimits(contract)
	h := portalHomePage{visit: v, Stopped: contract.Suspended}
	h.EachModel = eachOf(own, func(l limits.Limit) bool { return l.EachModel && !l.EachEndUser() })
	h.EachUser = eachOf(own, limits.Limit.EachEndUser)
	h.Levels = tile(p, c, "levels", func() ([]ui.Level, error) {
		keys, err := p.tenants.APIKeys(ctx, v.Visitor.Tenant, tenants.KeyFilter{Customer: v.Customer}, uuid.Nil, lastRows)
		if err != nil {
			return nil, err
		}
		return p.customerLevels(ctx, workspace{Tenant: v.Tenant, Now: v.Now}, own, &keys)
	})
	if contract.Subscription == uuid.Nil {
		return h, nil
	}
	sub, err := p.billing.Subscription(ctx, v.Visitor.Tenant, contract.Subscription)
	zone := v.Now.Location()
	h.Plan, h.Says, h.Fine = contract.Plan, sentence(own), billing.FinePrint(own, contract.Version.CapOutput, v.Tenant.Zone)
	h.Started, h.Period = sub.StartedAt.In(zone), billing.Period{Start: sub.Current.Start.In(zone), End: sub.Current.End.In(zone)}
	return h, err
}

func (p *Pages) portalHome(c echo.Context, v visit) error {
	h, err := p.readPortalHome(c, v)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, portalHomeView(h))
}

// portalLevelsTile is the levels by themselves, as the page asks for them again.
func (p *Pages) portalLevelsTile(c echo.Context, v visit) error {
	h, err := p.readPortalHome(c, v)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, portalLevelsAgain(h))
}

// Headline says how the customer stands; a reader may stop there.
func (h portalHomePage) Headline() string {
	switch {
	case h.Suspended:
		return "Your account is suspended. Every call is refused."
	case h.Stopped:
		return "Your subscription is suspended. Every call is refused."
	case h.Plan == "":
		return "You are on no plan at " + h.Brand.Name() + ", so every call is refused."
	case h.Levels == nil || len(*h.Levels) == 0:
		return "You are on the plan " + h.Plan + "."
	}
	worst := fullest(*h.Levels)
	if worst.Gauge.Full() >= 1 {
		return "You are at your limit of " + strings.ToLower(worst.Name) + "."
	}
	for _, l := range *h.Levels {
		if strings.HasSuffix(l.Name, "a day") && l.Of == "" {
			return "You have " + l.Left + " " + strings.ToLower(strings.TrimSuffix(l.Name, " a day")) + " left today."
		}
	}
	return "You have " + worst.Left + " " + strings.ToLower(strings.Split(worst.Name, " a ")[0]) + " left."
}

// portalAgreementPage is what a customer agreed to.
type portalAgreementPage struct {
	portalHomePage
	Quotes []agreedQuote
}

type agreedQuote struct {
	Number, URL string
	At          time.Time
	By          string
}

func (p *Pages) portalAgreement(c echo.Context, v visit) error {
	ctx := c.Request().Context()
	h, err := p.readPortalHome(c, v)
	if err != nil {
		return err
	}
	page, err := p.quotes.Quotes(ctx, v.Visitor.Tenant, quotes.Filter{Statuses: []quotes.Status{quotes.Accepted}, Customer: v.Customer}, uuid.Nil, lastRows)
	if err != nil {
		return err
	}
	out := portalAgreementPage{portalHomePage: h}
	for _, q := range page.Items {
		url, err := p.quotes.Link(ctx, v.Visitor.Tenant, q.ID)
		if err != nil {
			return err
		}
		a := agreedQuote{Number: q.Number, URL: url, By: q.DecidedBy.Called()}
		if q.DecidedAt != nil {
			a.At = q.DecidedAt.In(v.Now.Location())
		}
		out.Quotes = append(out.Quotes, a)
	}
	return show(c, http.StatusOK, portalAgreementView(out))
}
