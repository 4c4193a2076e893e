package web

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// need is something that waits for a person, with one thing to do about it.
type need struct {
	Tone         ui.Tone
	State, Text  string
	Action, Href string
}

// readNeeds lists what fails or stands still now: provider keys, errors of the
// last hour, caps that are spent (read here where they are not given).
func (p *Pages) readNeeds(ctx context.Context, w workspace, c *caps) ([]need, error) {
	var out []need
	if w.May(seeProviderKeys) {
		keys, err := p.tenants.ProviderKeys(ctx, w.Tenant.ID, uuid.Nil, 100)
		if err != nil {
			return nil, err
		}
		for _, k := range keys.Items {
			if k.Status == tenants.Invalid || k.Status == tenants.Unverified || coolWords(k, w.Now) != "" {
				out = append(out, p.keyNeed(k, w.Now))
			}
		}
	}
	failing, err := p.failing(ctx, w)
	if err != nil {
		return nil, err
	}
	out = append(out, failing...)
	if c == nil {
		read, err := p.readCaps(ctx, w)
		if err != nil {
			return nil, err
		}
		c = &read
	}
	for _, s := range c.Spent {
		out = append(out, need{
			Tone: ui.Bad, State: "At the cap until " + ui.Instant(s.ResetAt, w.Now), Text: s.Who + ": nothing is left of its " + s.What + ". Its calls are refused.",
			Action: "Refusals", Href: "/requests?outcome=refused",
		})
	}
	return out, nil
}

func (p *Pages) keyNeed(k tenants.ProviderKey, now time.Time) need {
	row := providerRowOf(k, now)
	n := need{Tone: row.Tone, State: "Provider key " + row.State, Text: k.Name, Action: "Look", Href: "/providers/" + id.ProviderKey.Format(k.ID)}
	if k.Last4 != "" {
		n.Text += " …" + k.Last4
	}
	if k.StatusReason != "" {
		n.Text += ": " + k.StatusReason
	}
	if row.Tone == ui.Cool {
		n.State = "Provider key: " + row.State
		if !row.Rests {
			n.Tone = ui.Cool
		}
		if list := k.Cooldowns(now); k.StatusReason == "" && len(list) > 0 {
			n.Text += ": " + reasons[list[0].Bench.Reason]
		}
	}
	if !p.mounted["/providers/:id"] {
		n.Href, n.Action = "/usage?by=provider_key", "Its usage"
	}
	return n
}

// failing are the errors of the last hour, by provider key for who may see
// those.
func (p *Pages) failing(ctx context.Context, w workspace) ([]need, error) {
	q := usage.Query{From: w.Now.Add(-time.Hour), To: w.Now, Bucket: usage.Minute, Zone: w.Now.Location(), Filter: usage.Filter{Tests: usage.WithTests}}
	if w.May(seeProviderKeys) {
		q.GroupBy = usage.ByProviderKey
	}
	rep, err := p.reports.Report(ctx, w.Tenant.ID, q)
	if err != nil {
		return nil, err
	}
	var order []usage.Group
	sums := map[usage.Group]*usage.Sums{}
	for _, r := range rep.Rows {
		if sums[r.Group] == nil {
			sums[r.Group] = &usage.Sums{}
			order = append(order, r.Group)
		}
		sums[r.Group].Add(r.Sums)
	}
	names, err := p.labels(ctx, w.Tenant.ID, groupIDs(rep.Rows))
	if err != nil {
		return nil, err
	}
	var out []need
	for _, g := range order {
		s := sums[g]
		if s.Errors == 0 {
			continue
		}
		n := need{Tone: ui.Warn, State: ui.Of(s.Errors, "error", "errors") + " in the last hour", Action: "Look", Href: "/requests?outcome=provider_error"}
		n.Text = fmt.Sprintf("of %s", ui.Of(s.Requests, "request", "requests"))
		if g.ID != uuid.Nil {
			n.Text += " by " + names.name(id.ProviderKey, g.ID)
			n.Href += "&provider=" + id.ProviderKey.Format(g.ID)
		}
		if s.Errors*10 >= s.Requests {
			n.Tone = ui.Bad
		}
		n.Text += "."
		out = append(out, n)
	}
	return out, nil
}
