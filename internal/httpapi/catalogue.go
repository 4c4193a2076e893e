package httpapi

import (
	"time"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
)

type exportQuery struct {
	Own string `query:"own" enum:"true,false" description:"true: only rows that were imported here, without those that are built in"`
}

type sheetJSON struct {
	Rows int    `json:"rows" description:"How many rows the file has"`
	CSV  string `json:"csv" description:"The file: a header, then a row a line. Importing it changes nothing"`
}

type importBody struct {
	CSV    string `json:"csv" required:"true" description:"The file, with the columns of an export; at most 5,000 rows"`
	Mode   string `json:"mode,omitempty" enum:"merge,replace" description:"merge (absent): rows that the file does not have stay. replace: your own rows that it does not have are removed; what is built in stays"`
	DryRun bool   `json:"dry_run,omitempty" description:"Say what would change, and store nothing"`
}

type diffJSON struct {
	DryRun    bool       `json:"dry_run"`
	Added     int        `json:"added"`
	Changed   int        `json:"changed"`
	Removed   int        `json:"removed"`
	Unchanged int        `json:"unchanged"`
	Rows      []diffLine `json:"rows" description:"The first 200 rows that are not as they were"`
}

type diffLine struct {
	Line   int      `json:"line" description:"Of the file; 0 for a row that is removed"`
	Before []string `json:"before" description:"The cells as they were; empty for a new row"`
	After  []string `json:"after" description:"The cells as they are; empty for a removed row"`
}

// exportSheet answers with a sheet of the catalogue.
func exportSheet(k catalogue.Kind) func(*Server, *request, exportQuery, none) (sheetJSON, error) {
	return func(s *Server, r *request, q exportQuery, _ none) (sheetJSON, error) {
		file, rows, err := s.catalogue.Export(r.ctx, r.tenant(), k, q.Own == "true")
		return sheetJSON{rows, file}, err
	}
}

// importSheet takes rows into a sheet of the catalogue.
func importSheet(k catalogue.Kind) func(*Server, *request, none, importBody) (diffJSON, error) {
	return func(s *Server, r *request, _ none, b importBody) (diffJSON, error) {
		if b.Mode != "" && b.Mode != "merge" && b.Mode != "replace" {
			return diffJSON{}, fault.InvalidFields(fault.Field{Pointer: "/mode", Code: "not_one_of", Message: "This must be merge or replace."})
		}
		d, err := s.catalogue.Import(r.ctx, r.tenant(), k, catalogue.Import{CSV: b.CSV, Replace: b.Mode == "replace", DryRun: b.DryRun})
		out := diffJSON{DryRun: b.DryRun, Added: d.Added, Changed: d.Changed, Removed: d.Removed, Unchanged: d.Unchanged, Rows: []diffLine{}}
		for _, x := range d.Rows {
			out.Rows = append(out.Rows, diffLine{x.Line, orNone(x.Before), orNone(x.After)})
		}
		return out, err
	}
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

type offersQuery struct {
	Provider string `query:"provider" description:"The provider's slug"`
}

type offersJSON struct {
	Provider string      `json:"provider"`
	Offers   []offerJSON `json:"offers" description:"The tiers that the provider publishes limits for, the smallest first; none: it publishes none that are known"`
}

type offerJSON struct {
	Tier   string        `json:"tier" example:"free"`
	Limits []offeredJSON `json:"limits" description:"As a provider key takes them; adding a key with this tier gives it these"`
}

type offeredJSON struct {
	Dimension   string           `json:"dimension"`
	Window      string           `json:"window"`
	Amount      int64            `json:"amount"`
	Models      []string         `json:"models,omitempty"`
	EachModel   bool             `json:"each_model,omitempty"`
	Weights     map[string]int64 `json:"weights,omitempty"`
	PublishedOn string           `json:"published_on" description:"The day from which it is known" example:"2026-06-10"`
	Source      string           `json:"source" description:"Where the provider says so"`
}

// listOffers says what a provider publishes for each of its tiers.
func listOffers(s *Server, r *request, q offersQuery, _ none) (offersJSON, error) {
	offers, err := s.offers(r, q.Provider)
	if err != nil {
		return offersJSON{}, err
	}
	out := offersJSON{Provider: q.Provider, Offers: []offerJSON{}}
	for _, o := range offers {
		one := offerJSON{Tier: o.Tier}
		for _, l := range o.Limits {
			one.Limits = append(one.Limits, offeredOf(l))
		}
		out.Offers = append(out.Offers, one)
	}
	return out, nil
}

func offeredOf(l catalogue.Offered) offeredJSON {
	out := offeredJSON{
		Dimension: string(l.Dimension), Window: string(l.Window), Amount: l.Amount, Models: l.Models, EachModel: l.EachModel,
		PublishedOn: l.Since.Format(time.DateOnly), Source: l.Source,
	}
	for c, w := range l.Weights {
		if out.Weights == nil {
			out.Weights = map[string]int64{}
		}
		out.Weights[string(c)] = w
	}
	return out
}

func (s *Server) offers(r *request, provider string) ([]catalogue.Offer, error) {
	if _, known := catalogue.Lookup(provider); !known {
		return nil, fault.InvalidFields(fault.Field{Pointer: "?provider", Code: "unknown_provider", Message: "There is no such provider."})
	}
	b, err := s.directory.Book(r.ctx, r.tenant())
	if err != nil {
		return nil, err
	}
	return b.Offers(provider, s.now()), nil
}

// tierLimits are the limits of a key on a tier of its provider: those that are
// stated, and what the provider publishes beside them.
func (s *Server) tierLimits(r *request, provider, tier string, stated []limits.Limit) ([]limits.Limit, error) {
	if tier == "" {
		return stated, nil
	}
	b, err := s.directory.Book(r.ctx, r.tenant())
	if err != nil {
		return nil, err
	}
	offer, known := catalogue.OfferOf(b.Offers(provider, s.now()), tier)
	if !known {
		return nil, fault.InvalidFields(fault.Field{Pointer: "/tier", Code: "unknown_tier", Message: "The provider publishes no limits for such a tier; GET /api/v1/provider-keys/offers lists those that it does."})
	}
	return offer.With(stated), nil
}
