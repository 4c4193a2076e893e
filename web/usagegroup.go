package web

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"weir/internal/usage"
	"weir/web/ui"
)

// usageGroup is one row of the table.
type usageGroup struct {
	Group         usage.Group
	Name, Of, Ref string
	Series        int // of the chart; -1: part of the rest
	usage.Sums
}

// groupings are the ways to tell calls apart, with the right that each needs.
var groupings = []struct {
	By    usage.GroupBy
	Words string
	Needs right
}{
	{usage.ByModel, "by model", ""},
	{usage.ByCustomer, "by customer", seeCustomers},
	{usage.ByKey, "by API key", seeCustomerKeys},
	{usage.ByProviderKey, "by provider key", seeProviderKeys},
	{usage.ByOutcome, "by outcome", ""},
	{usage.ByEndUser, "by end user", ""},
}

// grouping is what was asked for where the role may see it, else by model.
func grouping(asked string, w workspace) usage.GroupBy {
	for _, g := range groupings {
		if string(g.By) == asked && (g.Needs == "" || w.May(g.Needs)) {
			return g.By
		}
	}
	if tag, ok := usage.GroupBy(asked).Tag(); ok && len(usage.CheckLabels("", map[string]string{tag: ""})) == 0 {
		return usage.ByTag(tag)
	}
	return usage.ByModel
}

func groupIDs(rows []usage.Row) (ids []uuid.UUID) {
	for _, r := range rows {
		if r.Group.ID != uuid.Nil {
			ids = append(ids, r.Group.ID)
		}
	}
	return ids
}

// group adds the rows up by group, the largest first, and by bucket.
func (u *usagePage) group(names labels) {
	at := map[usage.Group]int{}
	for _, r := range u.Report.Rows {
		i, known := at[r.Group]
		if !known {
			i = len(u.Groups)
			at[r.Group] = i
			g := usageGroup{Group: r.Group, Series: -1}
			g.Name, g.Of, g.Ref = names.group(u.By, r.Group)
			u.Groups = append(u.Groups, g)
		}
		u.Groups[i].Add(r.Sums)
		if n := len(u.Buckets); n == 0 || !u.Buckets[n-1].Start.Equal(r.Start) {
			u.Buckets = append(u.Buckets, usage.Row{Start: r.Start.In(u.Now.Location()), End: r.End.In(u.Now.Location())})
		}
		u.Buckets[len(u.Buckets)-1].Add(r.Sums)
	}
	slices.SortStableFunc(u.Groups, func(a, b usageGroup) int {
		return cmp.Or(cmp.Compare(u.value(b.Sums), u.value(a.Sums)), cmp.Compare(b.Requests+b.Refused, a.Requests+a.Refused))
	})
	most := ui.MostSeries
	if len(u.Groups) > most {
		most--
	}
	for i := range u.Groups {
		if i < most {
			u.Groups[i].Series = i
		} else {
			u.Groups[i].Series = ui.MostSeries - 1
		}
	}
}

// value is the measure that is shown, good for a height and an order only.
func (u usagePage) value(s usage.Sums) float64 {
	switch u.Show {
	case "requests":
		return float64(s.Requests)
	case "refused":
		return float64(s.Refused)
	case "billed", "margin":
		return charge(s) / 1e12
	}
	return float64(s.Tokens.Total())
}

// unit is what is shown, as the chart says it.
func (u usagePage) unit() string {
	switch u.Show {
	case "refused":
		return "calls refused"
	case "billed", "margin":
		return u.Tenant.Currency + " billed"
	}
	return u.Show
}

// said is the measure of s with its unit.
func (u usagePage) said(s usage.Sums) string {
	switch u.Show {
	case "requests":
		return ui.Of(s.Requests, "request", "requests")
	case "refused":
		return ui.Of(s.Refused, "call refused", "calls refused")
	case "billed":
		return moneyWords(s.Charges, u.Tenant.Currency)
	case "margin":
		return moneyWords(s.Charges, u.Tenant.Currency) + " billed, margin " + moneyWords(s.Margins(), u.Tenant.Currency)
	}
	return ui.Of(s.Tokens.Total(), "token", "tokens")
}

// share is a group's part of the whole, in tenths of a percent.
func (u usagePage) share(s usage.Sums) string {
	all := u.value(u.Report.Totals)
	if all <= 0 {
		return "–"
	}
	return strconv.FormatFloat(100*u.value(s)/all, 'f', 1, 64) + "%"
}
