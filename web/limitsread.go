package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// How many customers, keys and provider keys the page of limits and the caps of
// Home look at, the newest first.
const (
	watchedCustomers = 200
	watchedKeys      = 100
)

// readLimits asks the limits engine how every limit stands that the role may
// see, by whose it is.
func (p *Pages) readLimits(ctx context.Context, v *limitsPage) ([]limitGroup, error) {
	groups, err := p.customersLimits(ctx, v)
	if err != nil {
		return nil, err
	}
	providers, err := p.providersLimits(ctx, v.workspace)
	if err != nil {
		return nil, err
	}
	groups = append(groups, providers...)
	own := limitGroup{Name: v.Tenant.Name, Of: "all customers together"}
	if own.Lines, err = p.lines(ctx, v.workspace, v.Tenant.Limits, nil, "", v.User); err != nil {
		return nil, err
	}
	if len(own.Lines) > 0 {
		groups = append(groups, own)
	}
	return groups, nil
}

// customersLimits are the limits of plans, and under each customer those of its
// keys.
func (p *Pages) customersLimits(ctx context.Context, v *limitsPage) ([]limitGroup, error) {
	if !v.May(seeCustomers) {
		return nil, nil
	}
	contracts, err := p.billing.Contracts(ctx, v.Tenant.ID, watchedCustomers+1)
	if err != nil {
		return nil, err
	}
	if v.More = len(contracts) > watchedCustomers; v.More {
		contracts = contracts[:watchedCustomers]
	}
	keys, err := p.ownLimitKeys(ctx, v.workspace)
	if err != nil {
		return nil, err
	}
	var out []limitGroup
	for _, c := range contracts {
		g := limitGroup{Name: c.Customer.Name, Of: "plan " + contractWords(c), Href: "/customers/" + id.Customer.Format(c.Customer.ID)}
		if g.Lines, err = p.lines(ctx, v.workspace, c.Own, nil, "", v.User); err != nil {
			return nil, err
		}
		for _, k := range keys[c.Customer.ID] {
			own, err := p.lines(ctx, v.workspace, k.Limits, nil, "key "+k.Name, v.User)
			if err != nil {
				return nil, err
			}
			g.Lines = append(g.Lines, own...)
		}
		out = append(out, g)
	}
	return out, nil
}

// ownLimitKeys are the newest keys that work and have limits of their own, by
// customer; of a rotated pair, one.
func (p *Pages) ownLimitKeys(ctx context.Context, w workspace) (map[uuid.UUID][]tenants.APIKey, error) {
	out := map[uuid.UUID][]tenants.APIKey{}
	if !w.May(seeCustomerKeys) {
		return out, nil
	}
	page, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer}, uuid.Nil, watchedKeys)
	seen := map[uuid.UUID]bool{}
	for _, k := range page.Items {
		if k.Status(w.Now) == "active" && len(k.Limits) > 0 && !seen[k.Counter] {
			seen[k.Counter] = true
			out[k.Customer] = append(out[k.Customer], k)
		}
	}
	return out, err
}

func (p *Pages) providersLimits(ctx context.Context, w workspace) ([]limitGroup, error) {
	if !w.May(seeProviderKeys) {
		return nil, nil
	}
	page, err := p.tenants.ProviderKeys(ctx, w.Tenant.ID, uuid.Nil, watchedKeys)
	if err != nil {
		return nil, err
	}
	var out []limitGroup
	for _, k := range page.Items {
		g := limitGroup{Name: k.Name, Of: "what the provider allows", Href: "/providers/" + id.ProviderKey.Format(k.ID)}
		if g.Lines, err = p.lines(ctx, w, k.Limits, k.Models, "", ""); err != nil {
			return nil, err
		}
		if len(g.Lines) > 0 {
			out = append(out, g)
		}
	}
	pools, err := p.poolsLimits(ctx, w, page.Items)
	return append(out, pools...), err
}

// poolsLimits are those of the pools that keys are in, for the models of each.
func (p *Pages) poolsLimits(ctx context.Context, w workspace, keys []tenants.ProviderKey) (out []limitGroup, err error) {
	models := map[uuid.UUID][]string{}
	var pools []tenants.Pool
	for _, k := range keys {
		if k.Pool.ID == uuid.Nil {
			continue
		}
		if _, seen := models[k.Pool.ID]; !seen {
			pools = append(pools, k.Pool)
		}
		models[k.Pool.ID] = append(models[k.Pool.ID], k.Models...)
	}
	for _, x := range pools {
		served := models[x.ID]
		slices.Sort(served)
		g := limitGroup{Name: x.Name, Of: "what the provider allows all keys of the pool", Href: "/providers/pools/" + id.Pool.Format(x.ID)}
		if g.Lines, err = p.lines(ctx, w, x.Limits, slices.Compact(served), "", ""); err != nil {
			return nil, err
		}
		if len(g.Lines) > 0 {
			out = append(out, g)
		}
	}
	return out, nil
}

// lines are limits as they stand: the shared ledgers, then for each of the
// models the ledger that a limit keeps for it alone.
func (p *Pages) lines(ctx context.Context, w workspace, list []limits.Limit, models []string, of, user string) ([]limitLine, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var shared, each []limits.Limit
	for _, l := range list {
		if l.EachModel {
			each = append(each, l)
		} else {
			shared = append(shared, l)
		}
	}
	out, err := p.linesOf(ctx, w, shared, "", of, user)
	for _, model := range models[:min(len(models), modelGauges)] {
		if err != nil || len(each) == 0 {
			return out, err
		}
		applying := slices.DeleteFunc(slices.Clone(each), func(l limits.Limit) bool { return !l.Applies(model) })
		var more []limitLine
		more, err = p.linesOf(ctx, w, applying, model, of, user)
		out = append(out, more...)
	}
	return out, err
}

// linesOf are limits as they stand for a model and an end user. Without one,
// those that have a ledger for each stand there without a level.
func (p *Pages) linesOf(ctx context.Context, w workspace, list []limits.Limit, model, of, user string) (out []limitLine, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	states, err := p.limits.Live(ctx, w.Tenant.ID, list, model, user)
	for _, s := range states {
		out = append(out, limitLine{Level: levelOf(s, w.Now), State: s, Reset: resetWords(s, w)})
	}
	for _, l := range list {
		if l.EachEndUser() && user == "" {
			s := limits.State{Limit: l}
			out = append(out, limitLine{Level: levelOf(s, w.Now), State: s, Apart: true})
		}
	}
	for i := range out {
		l := &out[i]
		l.Policy = policyWords(l.State.Limit)
		l.Of = strings.Join(slices.DeleteFunc([]string{cmp.Or(model, strings.Join(l.State.Limit.Models, ", ")), userWords(l.State.Limit, user), of}, func(s string) bool { return s == "" }), ", ")
	}
	return out, err
}

// userWords say which end user a limit's level is of.
func userWords(l limits.Limit, user string) string {
	switch {
	case !l.EachEndUser():
		return ""
	case user == "":
		return "each end user"
	}
	return "end user " + user
}

// policyWords name how a limit counts.
func policyWords(l limits.Limit) string {
	switch l.Policy {
	case limits.PolicyCalendar:
		return "calendar, " + cmp.Or(l.Zone, "UTC")
	case limits.PolicySliding:
		return "sliding"
	case limits.PolicyGauge:
		return "gauge"
	}
	if l.Burst > l.Amount {
		return "bucket, up to " + ui.Count(l.Burst) + " at once"
	}
	return "bucket"
}

// resetWords say when there is more again.
func resetWords(s limits.State, w workspace) string {
	l := s.Limit
	switch {
	case l.Amount == 0:
		return "admits nothing"
	case l.Policy == limits.PolicyCalendar:
		return ui.Instant(s.ResetAt.In(l.ZoneAt(s.ResetAt.Add(-1))), w.Now) + ", in " + ui.Span(s.ResetAt.Sub(w.Now))
	case l.Policy == limits.PolicyGauge:
		return "as calls end"
	case s.NextCallAfter > 0:
		return "passes again in " + ui.Span(s.NextCallAfter)
	case s.Full > 0:
		return "full in " + ui.Span(s.Full)
	}
	return "full"
}
