package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/limits"
	"weir/web/ui"
)

// offersView is what a provider publishes, as tiers to choose from.
type offersView struct {
	Provider string // as it is called
	Known    bool   // somebody's whose limits could be published
	Tiers    []tierRow
}

// none tells whether no tier is chosen.
func (v offersView) none() bool {
	return !slices.ContainsFunc(v.Tiers, func(t tierRow) bool { return t.Chosen })
}

// tierRow is one tier with its limits in words.
type tierRow struct {
	Value, Name string
	Chosen      bool
	Lines       []string
	Published   string // since when, in words
	Source      string
	Host        string // of the source
}

// tierLines is how many lines of a tier are told; the rest is counted.
const tierLines = 6

// offers reads what a provider publishes. What is chosen is a slug and a tier,
// so that a tier of one provider is never taken for another's.
func (p *Pages) offers(ctx context.Context, w workspace, slug, chosen string) (offersView, []catalogue.Offer, error) {
	known, _ := catalogue.Lookup(slug)
	v := offersView{Provider: known.Name, Known: known.BaseURL != ""}
	book, err := p.catalogue.Book(ctx, w.Tenant.ID)
	if err != nil {
		return v, nil, err
	}
	offers := book.Offers(slug, w.Now)
	for _, o := range offers {
		v.Tiers = append(v.Tiers, tierOf(slug, o, chosen))
	}
	return v, offers, nil
}

func tierOf(slug string, o catalogue.Offer, chosen string) tierRow {
	r := tierRow{Value: slug + "/" + o.Tier, Name: strings.ToUpper(o.Tier[:1]) + o.Tier[1:]}
	r.Chosen = r.Value == chosen
	var newest time.Time
	type group struct {
		models string
		parts  []string
	}
	var groups []*group
	for _, l := range o.Limits {
		models := coveredBy(l.Limit)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.models == models })
		if i < 0 {
			groups, i = append(groups, &group{models: models}), len(groups)
		}
		groups[i].parts = append(groups[i].parts, ui.Count(l.Amount)+" "+allowance(l.Limit))
		if l.Since.After(newest) {
			newest, r.Source = l.Since, l.Source
		}
	}
	for i, g := range groups {
		if i == tierLines {
			r.Lines = append(r.Lines, "and more, for "+ui.Of(int64(len(groups)-i), "other group of models", "other groups of models"))
			break
		}
		r.Lines = append(r.Lines, g.models+": "+strings.Join(g.parts, ", "))
	}
	r.Published = newest.Format("2 January 2006")
	r.Host, _, _ = strings.Cut(strings.TrimPrefix(r.Source, "https://"), "/")
	return r
}

// allowance is what an amount is of: "requests a minute".
func allowance(l limits.Limit) string {
	name := limitName(l)
	return strings.ToLower(name[:1]) + name[1:]
}

// coveredBy are the models that a provider's limit is for.
func coveredBy(l limits.Limit) string {
	switch {
	case len(l.Models) == 0:
		return "All models together"
	case len(l.Models) == 1 && strings.Contains(l.Models[0], "*"):
		return "All of " + l.Models[0] + " together"
	case len(l.Models) == 1:
		return l.Models[0]
	}
	return "Each of " + some(l.Models, 3)
}

// chosenTier is the tier that a form names, with what is published for it; ""
// where it names none of the provider's.
func chosenTier(slug, value string, offers []catalogue.Offer) (tier string, o catalogue.Offer) {
	name, found := strings.CutPrefix(value, slug+"/")
	if !found {
		return "", o
	}
	if o, found = catalogue.OfferOf(offers, name); !found {
		return "", o
	}
	return name, o
}

// providerOffers are the tiers of a provider by themselves, as the form asks for
// them when another one is chosen.
func (p *Pages) providerOffers(c echo.Context, _ auth.Person, w workspace) error {
	v, _, err := p.offers(c.Request().Context(), w, c.QueryParam("provider"), "")
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, offersFields(v))
}
