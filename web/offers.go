package web

import (
	"cmp"
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
	var groups []modelsLimits
	for _, l := range o.Limits {
		for _, models := range servedBy(l.Limit) {
			groups = told(groups, models, ui.Count(l.Amount)+" "+allowance(l.Limit))
		}
		if l.Since.After(newest) {
			newest, r.Source = l.Since, l.Source
		}
	}
	groups = merged(groups)
	for i, g := range groups {
		if i == tierLines {
			r.Lines = append(r.Lines, "and more, for "+ui.Of(int64(len(groups)-i), "other group of models", "other groups of models"))
			break
		}
		r.Lines = append(r.Lines, g.words()+": "+strings.Join(g.parts, ", "))
	}
	r.Published = newest.Format("2 January 2006")
	r.Host, _, _ = strings.Cut(strings.TrimPrefix(r.Source, "https://"), "/")
	return r
}

// modelsLimits are models that have the same limits, each for itself; one that
// is a sentence stands for models together.
type modelsLimits struct {
	models []string
	parts  []string
}

// servedBy are the models that a limit is for, one by one; those that share it
// as a sentence.
func servedBy(l limits.Limit) []string {
	if len(l.Models) == 0 || strings.Contains(l.Models[0], "*") {
		return []string{coveredBy(l)}
	}
	return l.Models
}

// told notes a limit of a model.
func told(groups []modelsLimits, model, part string) []modelsLimits {
	i := slices.IndexFunc(groups, func(g modelsLimits) bool { return g.models[0] == model })
	if i < 0 {
		return append(groups, modelsLimits{[]string{model}, []string{part}})
	}
	groups[i].parts = append(groups[i].parts, part)
	return groups
}

// merged puts models that have the same limits into one group.
func merged(list []modelsLimits) (out []modelsLimits) {
	for _, g := range list {
		slices.SortStableFunc(g.parts, func(a, b string) int { return cmp.Compare(lateness(a), lateness(b)) })
		if i := slices.IndexFunc(out, func(o modelsLimits) bool { return slices.Equal(o.parts, g.parts) }); i >= 0 {
			out[i].models = append(out[i].models, g.models...)
			continue
		}
		out = append(out, g)
	}
	return out
}

// lateness puts what counts by the minute before what counts by the day.
func lateness(part string) int {
	if strings.HasSuffix(part, " a minute") {
		return 0
	}
	return 1
}

func (g modelsLimits) words() string {
	if len(g.models) == 1 {
		return g.models[0]
	}
	return "Each of " + some(g.models, 3)
}

// allowance is what an amount is of: "requests a minute".
func allowance(l limits.Limit) string {
	name := limitName(l)
	return strings.ToLower(name[:1]) + name[1:]
}

// coveredBy are the models that a provider's limit is for.
func coveredBy(l limits.Limit) string {
	switch {
	case len(l.Models) == 0 && l.EachModel:
		return "Each model"
	case len(l.Models) == 0:
		return "All models together"
	case len(l.Models) == 1 && strings.Contains(l.Models[0], "*") && l.EachModel:
		return "Each of " + l.Models[0]
	case len(l.Models) > 1 && !l.EachModel:
		return some(l.Models, 3) + " together"
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
