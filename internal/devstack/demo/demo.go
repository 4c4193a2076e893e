// Package demo fills a development stack with tenants that look as if they had
// been in use for a month: their calls go through the real limits engine and
// into the real books.
//
// What it makes follows from a seed. Run again it makes nothing twice: what is
// there stays, and only the calls since the last run are new.
package demo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// Options say which stack is filled, and with what.
type Options struct {
	AppURL, WorkerURL string
	KeyRing           string // of the stack
	Seed              uint64
	Days              int // how long ago the history begins
	Now               time.Time
	Log               *slog.Logger
}

// Result is one tenant as it stands afterwards.
type Result struct {
	Tenant      string
	Zone        string
	SignInToken string
	Events      int // of the whole history, those of earlier runs included
}

// Fill makes the tenants and their history.
func Fill(ctx context.Context, o Options) ([]Result, error) {
	app, err := postgres.Open(ctx, o.AppURL, postgres.Options{MaxConns: 4})
	if err != nil {
		return nil, err
	}
	defer app.Close()
	worker, err := postgres.Open(ctx, o.WorkerURL, postgres.Options{MaxConns: 4})
	if err != nil {
		return nil, err
	}
	defer worker.Close()
	ring, err := keyring.ParseRing(o.KeyRing)
	if err != nil {
		return nil, err
	}
	guard := outbound.New(outbound.Policy{})
	defer guard.Close()
	client := catalogue.NewClient(guard)
	began := o.Now.AddDate(0, 0, -o.Days)
	f := filler{
		o: o, app: app, worker: usage.NewWorker(worker, nil, usage.SigningKeys{}, usage.WorkerOptions{Parallel: 1, Log: o.Log}),
		then:  tenants.New(app, ring, guard, client, func() time.Time { return began }),
		now:   tenants.New(app, ring, guard, client, func() time.Time { return o.Now }),
		plans: billing.New(app, func() time.Time { return began }),
		guard: guard,
	}
	var out []Result
	for _, c := range cast {
		r, err := f.tenant(ctx, c)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// filler holds the services: those that make things a month ago, and those that
// act now.
type filler struct {
	o         Options
	app       *postgres.DB
	worker    *usage.Worker
	then, now *tenants.Service
	plans     *billing.Service
	guard     *outbound.Guard
}

func (f filler) tenant(ctx context.Context, c company) (Result, error) {
	token, _, err := f.now.SignInLink(ctx, c.email, "")
	if fault.Is(err, fault.NotFound) {
		if err := f.found(ctx, c); err != nil {
			return Result{}, err
		}
		token, _, err = f.now.SignInLink(ctx, c.email, "")
	}
	if err != nil {
		return Result{}, err
	}
	tenant, err := f.tenantOf(ctx, c.email)
	if err != nil {
		return Result{}, err
	}
	n, err := f.history(ctx, tenant, c)
	return Result{Tenant: c.name, Zone: c.zone, SignInToken: token, Events: n}, err
}

// found makes the tenant and everything that its history hangs on.
func (f filler) found(ctx context.Context, c company) error {
	made, err := f.then.Create(ctx, tenants.NewTenant{Name: c.name, OwnerEmail: c.email, OwnerName: c.owner, Zone: c.zone, Currency: c.currency})
	if err != nil {
		return err
	}
	tenant := made.Tenant.ID
	if _, err := f.then.AddProviderKey(ctx, tenant, tenants.NewProviderKey{Provider: "practice", Name: "Practice"}); err != nil {
		return err
	}
	for _, k := range c.providers {
		if err := f.addProvider(ctx, tenant, k); err != nil {
			return err
		}
	}
	if err := f.addNames(ctx, tenant, c); err != nil {
		return err
	}
	plans := map[string]uuid.UUID{}
	for _, p := range c.plans {
		made, err := f.plans.AddPlan(ctx, tenant, p.name, p.version())
		if err != nil {
			return err
		}
		if _, err := f.plans.Publish(ctx, tenant, made.ID); err != nil {
			return err
		}
		plans[p.name] = made.ID
	}
	for _, customer := range c.customers {
		if err := f.addCustomer(ctx, tenant, customer, plans[customer.plan]); err != nil {
			return err
		}
	}
	if _, err := branding.New(f.app, func() time.Time { return f.o.Now }).Change(ctx, tenant, branding.Change{LegalLine: &c.brand.LegalLine, Hue: &c.brand.Hue, SupportEmail: &c.brand.SupportEmail}); err != nil {
		return err
	}
	if err := f.addOffers(ctx, tenant, c.offers, plans); err != nil {
		return err
	}
	if err := f.nextVersion(ctx, tenant, plans[c.revised]); err != nil {
		return err
	}
	return f.addTelling(ctx, tenant)
}

// nextVersion publishes another version of a plan, which nobody is on yet; of none
// where the company has none.
func (f filler) nextVersion(ctx context.Context, tenant, plan uuid.UUID) error {
	if plan == uuid.Nil {
		return nil
	}
	x, err := f.plans.Plan(ctx, tenant, plan)
	if err != nil {
		return err
	}
	next := x.Version.Again()
	for i := range next.Limits {
		next.Limits[i].Amount += next.Limits[i].Amount / 4
	}
	if _, err := f.plans.AddVersion(ctx, tenant, plan, next); err != nil {
		return err
	}
	_, err = f.plans.Publish(ctx, tenant, plan)
	return err
}

// addTelling makes alerts, and a webhook endpoint that is off: what a demo tells
// goes nowhere.
func (f filler) addTelling(ctx context.Context, tenant uuid.UUID) error {
	service := notify.New(f.app, f.now, f.guard, func() time.Time { return f.o.Now })
	off := true
	made, err := service.AddEndpoint(ctx, tenant, notify.NewEndpoint{URL: "https://example.com/hooks/weir", Description: "Operations"})
	if err != nil {
		return err
	}
	if _, err := service.ChangeEndpoint(ctx, tenant, made.ID, notify.EndpointChange{Disabled: &off}); err != nil {
		return err
	}
	if err := f.app.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := message.EmitTo(ctx, tx, tenant, made.ID, message.WebhookTest, struct{}{})
		return err
	}); err != nil {
		return err
	}
	for _, a := range []notify.Alert{
		{Kind: notify.AlertUsage, Scope: limits.ScopeCustomer, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Percent: 80, Mail: true},
		{Kind: notify.AlertCooling, Mail: true, Webhook: true},
	} {
		if _, err := service.AddAlert(ctx, tenant, a); err != nil {
			return err
		}
	}
	return nil
}

func (f filler) addCustomer(ctx context.Context, tenant uuid.UUID, c customer, plan uuid.UUID) error {
	made, err := f.then.AddCustomer(ctx, tenant, tenants.NewCustomer{Name: c.name})
	if err != nil {
		return err
	}
	if _, err := f.plans.Subscribe(ctx, tenant, made.ID, plan); err != nil {
		return err
	}
	for _, k := range c.keys {
		_, err := f.then.AddAPIKey(ctx, tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: made.ID, Name: k.name, Test: k.test})
		if err != nil {
			return err
		}
	}
	return nil
}

// addNames pools the key that shares an account, and makes the aliases.
func (f filler) addNames(ctx context.Context, tenant uuid.UUID, c company) error {
	keys, err := f.then.ProviderKeys(ctx, tenant, uuid.Nil, 100)
	if err != nil {
		return err
	}
	for _, k := range keys.Items {
		if c.account == "" || k.Name != claude.name {
			continue
		}
		if _, err := f.then.AddPool(ctx, tenant, tenants.NewPool{
			Name: c.account, Keys: []uuid.UUID{k.ID},
			Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 400_000}},
		}); err != nil {
			return err
		}
	}
	for _, a := range c.aliases {
		if _, err := f.then.AddAlias(ctx, tenant, a); err != nil {
			return err
		}
	}
	return nil
}
