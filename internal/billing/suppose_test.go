package billing_test

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// past is a history that the real engine let through under a plan.
type past struct {
	books
	customer uuid.UUID
	from     time.Time
	events   []usage.Event
	refused  int64
}

// livedThrough makes 600 random calls in 20 minutes, decided by the engine under
// the plan as calls are, and stores what passed.
func livedThrough(t *testing.T, plan billing.NewVersion) (past, billing.Plan) {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{})
	t.Cleanup(guard.Close)
	s := tenants.New(db.App, ring, guard, catalogue.NewClient(guard), time.Now)
	made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin", Currency: "EUR"})
	must(t, err)
	p := past{books: books{billing.New(db.App, time.Now), s, made.Tenant.ID}, from: time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)}
	of, err := p.AddPlan(t.Context(), p.tenant, "Own", plan)
	must(t, err)
	of, err = p.Publish(t.Context(), p.tenant, of.ID)
	must(t, err)
	p.customer = p.customerOn(t, of.ID)
	p.live(t, of.Version)
	w := usage.NewWorker(db.Worker, nil, usage.SigningKeys{}, usage.WorkerOptions{Log: slog.New(slog.DiscardHandler)})
	must(t, w.Backfill(t.Context(), id.New(), p.events))
	return p, of
}

func (p *past) live(t *testing.T, v billing.Version) {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	random := rand.New(rand.NewPCG(seed, 0))
	now := p.from
	engine := limits.NewMemory(limits.MemoryOptions{Now: func() time.Time { return now }, Started: now})
	plan := []*limits.Set{limits.Compile(v.Placed(p.customer, "Own"))}
	var open []usage.Event
	rates := billing.RatesFor(v.Prices, "gpt-4o")
	settle := func(all bool) {
		rest := open[:0]
		for _, e := range open {
			if !all && e.EndedAt.After(now) {
				rest = append(rest, e)
				continue
			}
			_, err := engine.Settle(t.Context(), p.tenant, e.ID, limits.Settlement{Actual: limits.Cost{Requests: 1, Tokens: e.Tokens}})
			must(t, err)
			p.events = append(p.events, e.Priced(rates))
		}
		open = rest
	}
	for range 600 {
		now = now.Add(time.Duration(1+random.IntN(4000)) * time.Millisecond)
		settle(false)
		estimate := limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: int64(random.IntN(500)), Output: 500}}
		d, err := engine.Reserve(t.Context(), limits.Request{Tenant: p.tenant, Customer: p.customer, Model: "gpt-4o", Plan: plan, Estimate: estimate, Forget: true})
		must(t, err)
		if !d.Admitted {
			p.refused++
			continue
		}
		at := d.At.UTC()
		open = append(open, usage.Event{
			Version: 1, ID: d.Reservation.ID, RequestID: id.At(at), Tenant: p.tenant, Customer: p.customer, ModelAsked: "gpt-4o", ModelServed: "gpt-4o", Kind: "chat",
			StartedAt: at, EndedAt: at.Add(time.Duration(random.IntN(20_000)) * time.Millisecond), LocalDay: limits.DayStart(at, time.UTC), Outcome: usage.OK, Requests: 1,
			Tokens: limits.Tokens{Input: estimate.Tokens.Input, Output: int64(random.IntN(500))}, Estimate: estimate, Currency: "EUR",
		})
	}
	settle(true)
}

func (p past) suppose(t *testing.T, version uuid.UUID) billing.Supposed {
	t.Helper()
	got, err := p.Suppose(t.Context(), p.tenant, billing.Supposal{
		Customer: p.customer, Version: version, From: p.from, To: p.from.Add(time.Hour), Bucket: usage.Quarter, Zone: time.UTC,
	})
	must(t, err)
	var calls, refused int64
	for _, b := range got.Buckets {
		calls, refused = calls+b.Calls, refused+b.Refused
	}
	byLimit := int64(0)
	for _, l := range got.ByLimit {
		byLimit += l.Refused
	}
	if calls != got.Calls || refused != got.Refused || byLimit != got.Refused || got.Calls != int64(len(p.events)) {
		t.Fatalf("of %d calls %d were tried, %d by bucket; %d refused, %d by bucket, %d by limit", len(p.events), got.Calls, calls, got.Refused, refused, byLimit)
	}
	return got
}

// crowded is a plan that refuses some of a past.
func crowded(requests, tokens, concurrency, micros int64) billing.NewVersion {
	return billing.NewVersion{
		Limits: []limits.Limit{
			{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: requests},
			{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: tokens},
			{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 100_000_000},
			{Dimension: limits.DimensionConcurrency, Window: limits.WindowNone, Amount: concurrency},
		},
		Prices: []billing.Price{{Models: "*", Class: usage.Input, MicrosPerMillion: micros}, {Models: "*", Class: usage.Output, MicrosPerMillion: micros}},
	}
}

func TestHistoryUnderItsOwnPlanRefusesNothingThatPassed(t *testing.T) {
	t.Parallel()
	p, own := livedThrough(t, crowded(25, 16_000, 6, 1_000_000))
	if p.refused == 0 || len(p.events) < 100 {
		t.Fatalf("the past proves nothing: %d passed, %d refused", len(p.events), p.refused)
	}
	got := p.suppose(t, own.Version.ID)
	if got.Refused != 0 {
		t.Fatalf("%d of %d are refused: %+v", got.Refused, got.Calls, got.ByLimit)
	}
	if len(got.Then) != 1 || !got.Then[0].Amount.Sub(got.Charge.Amount).IsZero() || got.Charge.Amount.IsZero() {
		t.Errorf("it was charged %v, and would be %v", got.Then, got.Charge)
	}
}

func TestASmallerPlanSaysWhatItRefusesByWhichLimitAndWhatIsLeftToCharge(t *testing.T) {
	t.Parallel()
	p, _ := livedThrough(t, crowded(25, 16_000, 6, 1_000_000))
	small, err := p.AddPlan(t.Context(), p.tenant, "Small", crowded(5, 1_000_000, 100, 2_000_000))
	must(t, err)
	got := p.suppose(t, small.Version.ID)
	first, last := p.events[0].StartedAt, p.events[0].StartedAt
	for _, e := range p.events {
		first, last = slices.MinFunc([]time.Time{first, e.StartedAt}, time.Time.Compare), slices.MaxFunc([]time.Time{last, e.StartedAt}, time.Time.Compare)
	}
	most := 5 + int64(last.Sub(first).Minutes()*5) // of a bucket of 5 that refills 5 a minute
	if passed := got.Calls - got.Refused; passed > most || passed < 50 || len(got.ByLimit) != 1 || got.ByLimit[0].Limit.Dimension != limits.DimensionRequests || got.ByLimit[0].Last.Before(got.ByLimit[0].First) {
		t.Errorf("%d pass, %+v refuse", passed, got.ByLimit)
	}
	if got.Charge.Currency != "EUR" || got.Charge.Amount.Sign() <= 0 || got.Charge.Amount.Sub(got.Then[0].Amount).Sign() >= 0 {
		t.Errorf("charged %v, then %v", got.Charge, got.Then)
	}
	large, err := p.AddPlan(t.Context(), p.tenant, "Large", crowded(10_000, 10_000_000, 1000, 2_000_000))
	must(t, err)
	all := p.suppose(t, large.Version.ID)
	if all.Refused != 0 || !all.Charge.Amount.Sub(all.Then[0].Amount).Sub(all.Then[0].Amount).IsZero() {
		t.Errorf("at twice the price %v is charged, %v was; %d refused", all.Charge, all.Then, all.Refused)
	}
	if _, err := p.Suppose(t.Context(), uuid.New(), billing.Supposal{Customer: p.customer, Version: small.Version.ID, From: p.from, To: p.from.Add(time.Hour), Bucket: usage.Hour}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
}
