package web

import (
	"slices"

	"weir/internal/usage"
	"weir/web/ui"
)

// ranges are the spans as links that keep everything else.
func (u usagePage) ranges() (out []ui.Link) {
	for _, s := range spans {
		out = append(out, ui.Link{
			Words: s.Words, Current: s.Key == u.Span.Key,
			Href: link("/usage", u.Query, "range", s.Key, "bucket", "", "minute", "", "from", "", "to", ""),
		})
	}
	return out
}

func (u usagePage) measures() []ui.Option {
	list := []ui.Option{{Value: "tokens", Label: "Tokens"}, {Value: "requests", Label: "Requests"}, {Value: "refused", Label: "Refused"}}
	if u.May(seeMoney) {
		list = append(list, ui.Option{Value: "billed", Label: "Billed"}, ui.Option{Value: "margin", Label: "Margin"})
	}
	return ui.Choose(u.Show, list...)
}

func (u usagePage) groupings() (out []ui.Option) {
	for _, g := range groupings {
		if g.Needs == "" || u.May(g.Needs) {
			out = append(out, ui.Option{Value: string(g.By), Label: g.Words, Chosen: g.By == u.By})
		}
	}
	chosen, byTag := u.By.Tag()
	if byTag && !slices.Contains(u.Tags, chosen) {
		out = append(out, ui.Option{Value: string(u.By), Label: "by tag " + chosen, Chosen: true})
	}
	for _, name := range u.Tags {
		by := usage.ByTag(name)
		out = append(out, ui.Option{Value: string(by), Label: "by tag " + name, Chosen: by == u.By})
	}
	return out
}

func (u usagePage) groupHead() string {
	if tag, ok := u.By.Tag(); ok {
		return "Tag " + tag
	}
	return map[usage.GroupBy]string{
		usage.ByModel: "Model", usage.ByCustomer: "Customer", usage.ByKey: "API key", usage.ByProviderKey: "Provider key", usage.ByOutcome: "Outcome", usage.ByEndUser: "End user",
	}[u.By]
}

// narrow is the page for one group alone, by the next grouping; "" where there
// is nothing to go to.
func (u usagePage) narrow(g usageGroup) string {
	if g.Ref == "" {
		return ""
	}
	switch u.By {
	case usage.ByCustomer:
		return link("/usage", u.Query, "customer", g.Ref, "by", "model")
	case usage.ByKey:
		return link("/usage", u.Query, "key", g.Ref, "by", "model")
	case usage.ByProviderKey:
		return link("/usage", u.Query, "provider", g.Ref, "by", "model")
	case usage.ByOutcome:
		return link("/usage", u.Query, "outcome", g.Ref, "by", "model")
	case usage.ByEndUser:
		return link("/usage", u.Query, "end_user", g.Ref, "by", "model")
	case usage.ByModel, usage.ByNothing:
	}
	if tag, ok := u.By.Tag(); ok {
		return link("/usage", u.Query, "tag", tag+"="+g.Ref, "by", "model")
	}
	if u.May(seeCustomers) {
		return link("/usage", u.Query, "model", g.Ref, "by", "customer")
	}
	return link("/usage", u.Query, "model", g.Ref, "by", "outcome")
}

// title is what the page says in one line.
func (u usagePage) title() string {
	all := u.Report.Totals
	words := ui.Of(all.Tokens.Total(), "token", "tokens") + " in " + ui.Of(all.Requests, "request", "requests")
	if u.May(seeMoney) {
		words += ", billed at " + moneyWords(all.Charges, u.Tenant.Currency)
	}
	return words
}
