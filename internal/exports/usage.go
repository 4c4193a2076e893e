package exports

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/usage"
)

// kinds are what a group's id names.
var kinds = map[usage.GroupBy]id.Kind{usage.ByCustomer: id.Customer, usage.ByKey: id.APIKey, usage.ByProviderKey: id.ProviderKey}

// writeUsage writes a report: a row of each group in each bucket in which it
// asked for something, and last the totals of all, which are those of the rows.
func (f *file) writeUsage(ctx context.Context) error {
	rep, err := f.reports.Report(ctx, f.tenant, usage.Query{
		From: f.what.From, To: f.what.To, Bucket: f.what.Bucket, GroupBy: f.what.GroupBy, Filter: f.what.Filter, Zone: f.zone,
	})
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for _, r := range rep.Rows {
		ids = append(ids, r.Group.ID)
	}
	if err := f.learn(ctx, ids); err != nil {
		return err
	}
	currencies := f.currencies(rep.Totals)
	if err := f.sheet.head(f.usageHead(currencies)); err != nil {
		return err
	}
	for i, r := range rep.Rows {
		if r.Quiet() && r.Tokens.Total() == 0 && len(r.Charges) == 0 {
			continue
		}
		if err := f.row(f.usageRow(f.at(r.Start), f.at(r.End), f.groupName(r.Group), kinds[f.what.GroupBy].Format(r.Group.ID), r.Sums, currencies)); err != nil {
			return err
		}
		if err := f.keepFull(ctx, float64(i)/float64(len(rep.Rows))); err != nil {
			return err
		}
	}
	words := "total, as of " + f.at(rep.AsOf) + ", complete until " + f.at(rep.CompleteUntil)
	return f.row(f.usageRow(f.at(rep.From), f.at(rep.To), words, "", rep.Totals, currencies))
}

// groupName is how a group is called: by name where it has one.
func (f *file) groupName(g usage.Group) string {
	switch {
	case g.Rest:
		return "all others"
	case g.ID != uuid.Nil:
		return f.names[g.ID].Name
	}
	return g.Name
}

func (f *file) usageHead(currencies []string) []string {
	group := string(f.what.GroupBy)
	if group == "" {
		group = "group"
	}
	head := []string{
		"start", "end", group, "id", "requests", "refused", "errors",
		"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "tokens", "units",
	}
	for _, c := range currencies {
		if f.what.Sight.Charges {
			head = append(head, "billed_"+c)
		}
		if f.what.Sight.Costs {
			head = append(head, "provider_cost_"+c)
		}
	}
	if f.what.Sight.Costs {
		head = append(head, "requests_without_price")
	}
	return head
}

func (f *file) usageRow(start, end, name, ref string, s usage.Sums, currencies []string) []any {
	t := s.Tokens
	row := []any{start, end, name, ref, s.Requests, s.Refused, s.Errors, t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, t.Total(), s.Units}
	for _, c := range currencies {
		if f.what.Sight.Charges {
			row = append(row, amountIn(s.Charges, c))
		}
		if f.what.Sight.Costs {
			row = append(row, amountIn(s.Costs, c))
		}
	}
	if f.what.Sight.Costs {
		row = append(row, s.Unpriced)
	}
	return row
}

// currencies are those in which something is billed or costs, in order.
func (f *file) currencies(s usage.Sums) (out []string) {
	if !f.what.Sight.Charges && !f.what.Sight.Costs {
		return nil
	}
	for _, m := range s.Margins() {
		out = append(out, m.Currency)
	}
	slices.Sort(out)
	return out
}

// amountIn is the exact amount of a currency; none where there is none.
func amountIn(list []usage.Money, currency string) any {
	for _, m := range list {
		if m.Currency == currency {
			return m.Amount.Decimal()
		}
	}
	return nil
}
