package demo

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

// offer is a quote of the cast.
type offer struct {
	person, email, company, plan string
	daysAgo                      int
	requests                     int64 // a minute, of the quote alone; 0: the plan's
	looks                        int
	sent                         bool
	declined                     string
}

// addOffers makes quotes in every state that needs no customer.
func (f filler) addOffers(ctx context.Context, tenant uuid.UUID, list []offer, plans map[string]uuid.UUID) error {
	at := f.o.Now
	clock := func() time.Time { return at }
	sold := billing.New(f.app, clock)
	teller := notify.New(f.app, f.now, f.guard, clock)
	door := portal.New(f.app, f.now, teller, nil, demoURL, slog.New(slog.DiscardHandler), clock)
	service := quotes.New(f.app, f.now, sold, teller, door, capacity.New(f.now, sold, clock), demoURL, clock)
	for _, o := range list {
		at = f.o.Now.Add(-time.Duration(o.daysAgo) * 24 * time.Hour)
		w := quotes.Wanted{To: quotes.Recipient{Name: o.person, Email: o.email, Company: o.company}, Plan: plans[o.plan]}
		if o.requests > 0 {
			w.Own = &quotes.Own{Limits: &[]limits.Limit{
				{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: o.requests},
				{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 600 * o.requests},
			}}
		}
		q, err := service.Add(ctx, tenant, w)
		if err != nil {
			return err
		}
		if !o.sent {
			continue
		}
		if err := sendOffer(ctx, service, tenant, q.ID, o); err != nil {
			return err
		}
	}
	return service.Lapse(ctx)
}

// demoURL stands in mails that nobody gets.
const demoURL = "http://localhost:8080"

func sendOffer(ctx context.Context, service *quotes.Service, tenant, quote uuid.UUID, o offer) error {
	if _, err := service.Send(ctx, tenant, quote, ""); err != nil {
		return err
	}
	link, err := service.Link(ctx, tenant, quote)
	if err != nil {
		return err
	}
	token := strings.TrimPrefix(link, demoURL+"/q/")
	ctx = tenants.WithActor(ctx, tenants.Actor{Kind: "customer", Credential: "quote link"})
	for range o.looks {
		if _, err := service.Open(ctx, token, true); err != nil {
			return err
		}
	}
	if o.declined != "" {
		_, err = service.Decline(ctx, token, 0, o.declined)
	}
	return err
}
