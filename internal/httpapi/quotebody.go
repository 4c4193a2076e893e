package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

// onto puts what the body states over what is there.
func (b quoteBody) onto(w quotes.Wanted) (quotes.Wanted, error) {
	var err error
	if b.Plan != "" {
		if w.Plan, err = id.Plan.Parse(b.Plan); err != nil {
			return w, tenants.Missing("/plan", "plan")
		}
	}
	if b.Customer != nil {
		if w.Customer, err = optionalID(id.Customer, "customer", *b.Customer); err != nil {
			return w, tenants.Missing("/customer", "customer")
		}
	}
	if b.To != nil {
		w.To = quotes.Recipient(*b.To)
	}
	if b.Note != nil {
		w.Note = *b.Note
	}
	if b.ValidUntil != nil {
		w.ValidUntil = *b.ValidUntil
	}
	if b.Volumes != nil {
		w.Volumes = nil
		for model, v := range *b.Volumes {
			w.Volumes = append(w.Volumes, quotes.Volume{Model: model, Requests: v.Requests, Input: v.Input, CachedInput: v.CachedInput, Output: v.Output})
		}
		slices.SortFunc(w.Volumes, func(a, c quotes.Volume) int { return strings.Compare(a.Model, c.Model) })
	}
	w.Own, err = b.own()
	return w, err
}

func (b quoteBody) own() (*quotes.Own, error) {
	if b.Limits == nil && b.Prices == nil && b.BaseFee == nil {
		return nil, nil //nolint:nilnil // the plan's terms
	}
	v := versionBody{BaseFee: b.BaseFee}
	if b.Limits != nil {
		v.Limits = *b.Limits
	}
	if b.Prices != nil {
		v.Prices = *b.Prices
	}
	n, err := v.version()
	own := &quotes.Own{BaseFee: b.BaseFee}
	if b.Limits != nil {
		own.Limits = &n.Limits
	}
	if b.Prices != nil {
		own.Prices = &n.Prices
	}
	return own, err
}

// named gives the pointers of volumes their models, by which they are stated.
func named(err error, list []quotes.Volume) error {
	e := fault.Of(err)
	if err == nil || len(e.Fields) == 0 {
		return err
	}
	fields := slices.Clone(e.Fields)
	for i, f := range fields {
		rest, found := strings.CutPrefix(f.Pointer, "/volumes/")
		at, member, _ := strings.Cut(rest, "/")
		if n, err := strconv.Atoi(at); found && err == nil && n < len(list) {
			fields[i].Pointer = "/volumes/" + pointerToken.Replace(list[n].Model) + "/" + member
		}
	}
	renamed := *e
	renamed.Fields = fields
	return &renamed
}

// pointerToken escapes a member's name for a JSON pointer (RFC 6901).
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")
