package demo

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// chunk is how many events are stored in one transaction.
const chunk = 2000

// line is a customer with everything that its calls need.
type line struct {
	tenant    tenants.Tenant
	zone      *time.Location
	c         customer
	sub       billing.Subscription
	version   billing.Version
	plan      *limits.Set
	keys      map[string]tenants.APIKey
	providers map[string]tenants.ProviderKey // by model
	supply    map[string]*limits.Set         // what they allow, by model
}

// history writes the calls of every customer, day by day up to now, and returns
// how many there are.
func (f filler) history(ctx context.Context, tenant uuid.UUID, c company) (n int, err error) {
	lines, err := f.lines(ctx, tenant, c)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		days := f.o.Days
		if l.c.since > 0 {
			days = min(days, l.c.since)
		}
		w := newWalk(l, f.o)
		at := limits.DayStart(f.o.Now.AddDate(0, 0, -days), l.zone)
		for ; at.Before(f.o.Now); at = limits.DayEnd(at, l.zone) {
			events, err := w.day(ctx, at)
			if err != nil {
				return n, err
			}
			n += len(events)
			for part := range slices.Chunk(events, chunk) {
				if err := f.worker.Backfill(ctx, w.instance(), part); err != nil {
					return n, err
				}
			}
		}
		if err := f.now.TouchAPIKeys(ctx, tenant, w.lastUsed); err != nil {
			return n, err
		}
	}
	return n, nil
}

// lines finds what found made.
func (f filler) lines(ctx context.Context, tenant uuid.UUID, c company) ([]line, error) {
	t, err := f.now.Get(ctx, tenant)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return nil, err
	}
	customers, err := f.now.Customers(ctx, tenant, uuid.Nil, 100)
	if err != nil {
		return nil, err
	}
	providers, err := f.now.ProviderKeys(ctx, tenant, uuid.Nil, 100)
	if err != nil {
		return nil, err
	}
	serving, supply := map[string]tenants.ProviderKey{}, map[string]*limits.Set{}
	for _, k := range providers.Items {
		for _, m := range k.Models {
			serving[m], supply[m] = k, limits.Compile(k.LimitsFor(m))
		}
	}
	var out []line
	for _, known := range customers.Items {
		i := slices.IndexFunc(c.customers, func(x customer) bool { return x.name == known.Name })
		if i < 0 {
			continue
		}
		l := line{tenant: t, zone: zone, c: c.customers[i], providers: serving, supply: supply}
		if err := f.complete(ctx, &l, known.ID); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func (f filler) complete(ctx context.Context, l *line, customer uuid.UUID) error {
	subs, err := f.plans.Subscriptions(ctx, l.tenant.ID, billing.SubscriptionFilter{Customer: customer}, uuid.Nil, 1)
	if err != nil {
		return err
	}
	l.sub = subs.Items[0]
	p, err := f.plans.Plan(ctx, l.tenant.ID, l.sub.Plan)
	if err != nil {
		return err
	}
	l.version = p.Version
	placed := p.Version.Placed(customer, p.Name)
	for i := range placed {
		placed[i].Zone = l.tenant.Zone
	}
	l.plan = limits.Compile(placed)
	keys, err := f.now.APIKeys(ctx, l.tenant.ID, tenants.KeyFilter{Customer: customer}, uuid.Nil, 100)
	l.keys = map[string]tenants.APIKey{}
	for _, k := range keys.Items {
		l.keys[k.Name] = k
	}
	return err
}

// random is a source that follows from the seed and what it is for.
func random(seed uint64, words ...string) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		h.Write([]byte(w + "\x00"))
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// idAt is a UUIDv7 of an instant whose random part comes from r.
func idAt(at time.Time, r *rand.Rand) uuid.UUID {
	var u uuid.UUID
	ms := at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	for i := 6; i < 16; i++ {
		u[i] = byte(r.Uint32())
	}
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return u
}

// around draws a size whose middle is given, with a long tail upwards.
func around(r *rand.Rand, middle, spread float64) int64 {
	return int64(math.Max(1, middle*math.Exp(r.NormFloat64()*spread)))
}
