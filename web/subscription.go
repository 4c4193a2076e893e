package web

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// subscriptionView is a subscription as its customer's page shows it.
type subscriptionView struct {
	Tone            ui.Tone
	Status          string
	Cancelled, Owed bool
	Suspended       bool
	TrialEnds       time.Time // zero: it is in no trial
	Pending         string    // where it goes when its period ends, "" nowhere
}

// overrideRow is an override as people read it.
type overrideRow struct {
	ID           string
	Tone         ui.Tone
	When         string
	Says, Reason string
	Running      bool // or to come: it can be ended
}

// happened is one thing of a timeline.
type happened struct {
	At         time.Time
	What, More string
}

var standingWords = map[billing.Status]struct {
	tone  ui.Tone
	words string
}{
	billing.Trialing: {ui.OK, "in its trial"}, billing.Active: {ui.OK, "active"}, billing.PastDue: {ui.Warn, "past due"},
	billing.Cancelled: {ui.Warn, "cancelled"}, billing.Ended: {ui.Idle, "ended"},
}

func (p *Pages) subscriptionOf(ctx context.Context, tenant uuid.UUID, sub billing.Subscription, now time.Time) (subscriptionView, error) {
	words := standingWords[sub.Status]
	v := subscriptionView{Tone: words.tone, Status: words.words, Cancelled: sub.Status == billing.Cancelled, Owed: sub.PastDueAt != nil, Suspended: sub.SuspendedAt != nil}
	if sub.Current.Trial {
		v.TrialEnds = sub.Current.End.In(now.Location())
	}
	if sub.Pending == uuid.Nil {
		return v, nil
	}
	terms, err := p.billing.TermsOf(ctx, tenant, sub.Pending)
	v.Pending = terms.Plan + ", version " + ui.Count(int64(terms.Version.Number))
	return v, err
}

func overrideRowOf(o billing.Override, of billing.Version, now time.Time) overrideRow {
	zone := now.Location()
	r := overrideRow{ID: id.Override.Format(o.ID), Reason: o.Reason, Tone: ui.Idle, Says: billing.Sentence([]limits.Limit{o.Limit})}
	if was, replaces := o.Replaces(of); replaces {
		r.Says += " instead of " + ui.Count(was.Amount)
	}
	until := ""
	if o.Until != nil {
		until = ", until " + ui.Instant(o.Until.In(zone), now)
	}
	switch {
	case o.Until != nil && !now.Before(*o.Until):
		r.When = "Ended " + ui.Instant(o.Until.In(zone), now)
	case now.Before(o.From):
		r.When, r.Running = "From "+ui.Instant(o.From.In(zone), now)+until, true
	default:
		r.When, r.Running, r.Tone = "Since "+ui.Instant(o.From.In(zone), now)+until, true, ui.OK
	}
	return r
}

func (p *Pages) overrideRows(ctx context.Context, tenant, customer uuid.UUID, of billing.Version, now time.Time) ([]overrideRow, error) {
	page, err := p.billing.Overrides(ctx, tenant, customer, uuid.Nil, lastHappened)
	out := []overrideRow{}
	for _, o := range page.Items {
		out = append(out, overrideRowOf(o, of, now))
	}
	return out, err
}

const lastHappened = 20

// timeline is what happened to a customer, its subscriptions and its keys.
func (p *Pages) timeline(ctx context.Context, tenant, customer uuid.UUID, keys *tenants.Page[tenants.APIKey], now time.Time) ([]happened, error) {
	objects := []string{id.Customer.Format(customer)}
	subs, err := p.billing.Subscriptions(ctx, tenant, billing.SubscriptionFilter{Customer: customer}, uuid.Nil, 100)
	if err != nil {
		return nil, err
	}
	for _, s := range subs.Items {
		objects = append(objects, id.Subscription.Format(s.ID))
	}
	if keys != nil {
		for _, k := range keys.Items {
			objects = append(objects, id.APIKey.Format(k.ID))
		}
	}
	entries, err := p.tenants.Timeline(ctx, tenant, objects, lastHappened)
	out := []happened{}
	for _, e := range entries {
		out = append(out, happened{e.At.In(now.Location()), actionWords(e.Action), moreOf(e)})
	}
	return out, err
}

var actions = map[string]string{
	"customer.created": "Customer made", "customer.changed": "Customer changed", "customer.suspended": "Suspended", "customer.resumed": "Resumed", "customer.erased": "Personal data erased",
	"subscription.created": "Put on a plan", "subscription.changed": "Moved to another version", "subscription.scheduled": "Change put down for the period's end",
	"subscription.unscheduled": "Change taken back", "subscription.activated": "Trial over", "subscription.renewed": "Next period begun",
	"subscription.past_due": "Something is owed", "subscription.settled": "Nothing is owed any more", "subscription.suspended": "Subscription suspended",
	"subscription.resumed": "Subscription resumed", "subscription.cancelled": "Cancelled, runs until its period ends", "subscription.kept": "Cancellation taken back",
	"subscription.ended": "Subscription ended", "override.created": "Override made", "override.ended": "Override ended early",
	"api_key.created": "Key made", "api_key.rotated": "Key rotated", "api_key.revoked": "Key revoked", "api_key.changed": "Key changed",
}

func actionWords(action string) string {
	if words := actions[action]; words != "" {
		return words
	}
	return strings.ReplaceAll(strings.ReplaceAll(action, ".", " "), "_", " ")
}

// moreOf says more of an entry: what it was about and who did it.
func moreOf(e tenants.Entry) string {
	var d struct{ Plan, Limit, Reason, When string }
	_ = json.Unmarshal(e.Difference, &d) // one of another form says less
	var parts []string
	for _, s := range []string{d.Plan, d.Limit} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if d.Reason != "" {
		parts = append(parts, "“"+d.Reason+"”")
	}
	if e.By != "" {
		parts = append(parts, "by "+e.By)
	}
	return strings.Join(parts, ", ")
}

// subscriptionIn is the subscription of the customer of the path; a customer on
// no plan has none, which is a Conflict.
func (p *Pages) subscriptionIn(c echo.Context, who auth.Person) (tenants.Customer, billing.Subscription, error) {
	x, err := p.customerOf(c, who)
	if err != nil {
		return x, billing.Subscription{}, err
	}
	page, err := p.billing.Subscriptions(c.Request().Context(), who.Tenant, billing.SubscriptionFilter{Customer: x.ID}, uuid.Nil, 1)
	if err != nil {
		return x, billing.Subscription{}, err
	}
	if len(page.Items) == 0 {
		return x, billing.Subscription{}, tenants.NotFound("subscription")
	}
	return x, page.Items[0], nil
}

// alter does something to the subscription of the path, and says so.
func (p *Pages) alter(said string, do func(context.Context, uuid.UUID, uuid.UUID) (billing.Subscription, error)) func(echo.Context, auth.Person, workspace) error {
	return func(c echo.Context, who auth.Person, _ workspace) error {
		_, sub, err := p.subscriptionIn(c, who)
		if err != nil {
			return err
		}
		if _, err := do(asPerson(c, who), who.Tenant, sub.ID); err != nil {
			return err
		}
		return done(c, "/customers/"+c.Param("id"), said)
	}
}

// setOwed says that something is owed, or nothing any more.
func (p *Pages) setOwed(owed bool) func(context.Context, uuid.UUID, uuid.UUID) (billing.Subscription, error) {
	return func(ctx context.Context, tenant, subscription uuid.UUID) (billing.Subscription, error) {
		return p.billing.SetPastDue(ctx, tenant, subscription, owed)
	}
}

// askCancel asks before a subscription is cancelled.
func (p *Pages) askCancel(c echo.Context, who auth.Person, w workspace) error {
	x, sub, err := p.subscriptionIn(c, who)
	if err != nil {
		return err
	}
	at := "/customers/" + c.Param("id")
	end := ui.Instant(sub.Current.End.In(w.Now.Location()), w.Now)
	return p.ask(c, w, ui.Confirm{
		Title: "Cancel the subscription of " + x.Name + "?", Text: "It runs until its period ends, " + end + ". Until then this can be taken back.",
		Action: at + "/cancel", Back: at, Keep: "Keep it", Do: "Cancel at the period's end",
		Consequences: []ui.Consequence{{Number: "0", Text: "calls are refused before then; from then on every one is", Tone: ui.Bad}},
	})
}

// askEnd asks before a subscription ends at once.
func (p *Pages) askEnd(c echo.Context, who auth.Person, w workspace) error {
	x, _, err := p.subscriptionIn(c, who)
	if err != nil {
		return err
	}
	ask, err := p.endQuestion(c, who, w, x)
	if err != nil {
		return err
	}
	return p.ask(c, w, ask)
}

func (p *Pages) endQuestion(c echo.Context, who auth.Person, w workspace, x tenants.Customer) (ui.Confirm, error) {
	at := "/customers/" + c.Param("id")
	_, working, err := p.tenants.WorkingBeside(c.Request().Context(), who.Tenant, tenants.APIKey{Customer: x.ID}, w.Now)
	return ui.Confirm{
		Title: "End the subscription of " + x.Name + " now?", Text: "Every call is refused within a second. It cannot be taken back; the customer can be put on a plan anew.",
		Action: at + "/end", Back: at, Keep: "Let it run", Do: "End it now", Word: x.Name, Typed: ui.Input{Name: "word"},
		Consequences: []ui.Consequence{ui.Consequence{Tone: ui.Bad}.Of(working, "key that works now is refused", "keys that work now are refused")},
	}, err
}

// endNow ends a subscription whose customer's name was typed.
func (p *Pages) endNow(c echo.Context, who auth.Person, w workspace) error {
	x, sub, err := p.subscriptionIn(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.Get("word")) != x.Name {
		ask, err := p.endQuestion(c, who, w, x)
		if err != nil {
			return err
		}
		return p.askAgain(c, w, ask, f)
	}
	if _, err := p.billing.End(asPerson(c, who), who.Tenant, sub.ID); err != nil {
		return err
	}
	return done(c, "/customers/"+c.Param("id"), "subscription-ended")
}
