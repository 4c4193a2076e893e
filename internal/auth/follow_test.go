package auth_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// replicas are two directories of one database, with something to remember.
type replicas struct {
	fixture
	billing  *billing.Service
	two      [2]*auth.Directory
	customer tenants.Customer
	key      tenants.IssuedKey
	plans    [2]billing.Plan
}

func newReplicas(t testing.TB) replicas {
	t.Helper()
	r := replicas{fixture: newFixture(t)}
	r.billing = billing.New(r.db.App, r.clock.now)
	for i := range r.two {
		r.two[i] = r.newDirectory()
	}
	for i := range r.plans {
		r.plans[i] = try(r.billing.AddPlan(t.Context(), r.tenant, fmt.Sprint("Plan ", i), billing.NewVersion{
			Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: int64(10 + i)}},
		}))(t)
		r.plans[i] = try(r.billing.Publish(t.Context(), r.tenant, r.plans[i].ID))(t)
	}
	r.customer = try(r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Ada"}))(t)
	try(r.billing.Subscribe(t.Context(), r.tenant, r.customer.ID, r.plans[0].ID))(t)
	r.key = try(r.tenants.AddAPIKey(t.Context(), r.tenant, tenants.NewAPIKey{
		Kind: tenants.ForCustomer, Customer: r.customer.ID, Name: "k",
		Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 7, Policy: limits.PolicyCalendar, Mode: limits.ModeEnforce, Outage: limits.OutageShare}},
	}))(t)
	for _, d := range r.two {
		r.catchUp(d) // from here on changes are followed
	}
	r.clock.advance(time.Millisecond)
	return r
}

func try[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (f fixture) newDirectory() *auth.Directory {
	return auth.NewDirectory(f.db.App, f.tenants, billing.New(f.db.App, f.clock.now), tokenKeys(f.t, f.clock.now, "https://w.example", "a"), f.clock.now)
}

func (f fixture) catchUp(d *auth.Directory) {
	f.t.Helper()
	if err := d.CatchUp(f.t.Context(), f.db.App); err != nil {
		f.t.Fatal(err)
	}
}

// holds is everything that a directory says, errors included.
type holds struct {
	Caller   auth.Caller
	Contract billing.Contract
	Routes   []tenants.Route
	Aliases  map[string]tenants.Alias
	Cost     string // of a million tokens of one model
	Codes    [5]string
}

func (r replicas) ask(d *auth.Directory) (h holds) {
	code := func(err error) string {
		if err == nil {
			return ""
		}
		return fault.Of(err).Code
	}
	var errs [5]error
	h.Caller, errs[0] = d.Caller(r.t.Context(), r.key.Secret, "192.0.2.1")
	h.Contract, errs[1] = d.Contract(r.t.Context(), r.tenant, r.customer.ID)
	h.Routes, errs[2] = d.Routes(r.t.Context(), r.tenant)
	h.Aliases, errs[3] = d.Aliases(r.t.Context(), r.tenant)
	var book *catalogue.Book
	if book, errs[4] = d.Book(r.t.Context(), r.tenant); errs[4] == nil {
		cost, currency, _ := book.Costs.Of("custom", "m", r.clock.now(), limits.Tokens{Input: 1_000_000}, 1)
		h.Cost = cost.Decimal() + " " + currency
	}
	for i, err := range errs {
		h.Codes[i] = code(err)
	}
	return h
}

var alike = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(&limits.Set{}), cmpopts.IgnoreUnexported(billing.Enforced{}, tenants.Route{}, catalogue.Provider{}), cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().String() == ".Endpoint" || p.Last().String() == ".Sets"
}, cmp.Ignore()), cmpopts.EquateErrors()}

func (r replicas) rename(name string) (tenants.APIKey, error) {
	return r.tenants.ChangeAPIKey(r.t.Context(), r.tenant, r.key.ID, tenants.KeyChange{Name: &name})
}

func (r replicas) sql(query string, args ...any) func(testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		if err := r.db.App.WithTenant(t.Context(), r.tenant, func(tx pgx.Tx) error {
			tag, err := tx.Exec(t.Context(), query, args...)
			if err == nil && tag.RowsAffected() == 0 {
				return fmt.Errorf("%s: nothing changed", query)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryChangeIsSeenByEveryReplicaThatLookedAndOnlyItsPartIsReadAgain(t *testing.T) {
	r := newReplicas(t)
	provider, pool, alias := uuid.Nil, uuid.Nil, uuid.Nil
	for _, c := range []struct {
		name   string
		change func()
		reads  int64 // parts that each directory reads again
	}{
		{"nothing", func() {}, 0},
		{"a key is renamed", func() { try(r.rename("k2"))(t) }, 1},
		{"a key is used", func() {
			if err := r.tenants.TouchAPIKeys(t.Context(), r.tenant, map[uuid.UUID]time.Time{r.key.ID: r.clock.now()}); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"a key's limit changes", func() {
			r.sql(`update limits set amount = 8 where tenant_id = $1 and owner_kind = 'api_key'`, r.tenant)(t)
		}, 1},
		{"a customer is suspended", func() { try(r.tenants.SuspendCustomer(t.Context(), r.tenant, r.customer.ID))(t) }, 1},
		{"a customer is back", func() { try(r.tenants.ResumeCustomer(t.Context(), r.tenant, r.customer.ID))(t) }, 1},
		{"a customer moves to another plan", func() { try(r.billing.Move(t.Context(), r.tenant, r.customer.ID, r.plans[1].ID))(t) }, 2},
		{"a plan is renamed", func() {
			r.sql(`update plans set name = 'Gold' where tenant_id = $1 and plan_id = $2`, r.tenant, r.plans[1].ID)(t)
		}, 1},
		{"a plan version is retired", func() {
			r.sql(`update plan_versions set status = 'retired' where tenant_id = $1 and plan_version_id = $2`, r.tenant, r.plans[1].Version.ID)(t)
		}, 1},
		{"the tenant gets a limit", func() {
			if err := r.db.App.WithTenant(t.Context(), r.tenant, func(tx pgx.Tx) error {
				_, err := tenants.AddLimits(t.Context(), tx, r.tenant, tenants.OwnedByTenant, r.tenant, []limits.Limit{limits.Default(limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 3})})
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"the tenant's zone changes", func() {
			zone := "Pacific/Auckland"
			try(r.tenants.Change(t.Context(), r.tenant, tenants.TenantChange{Zone: &zone}))(t)
		}, 1},
		{"a price is imported", func() {
			try(catalogue.New(r.db.App, tenants.Audit).Import(t.Context(), r.tenant, catalogue.KindPrices, catalogue.Import{
				CSV: "provider,model,class,above,micros_per_million,currency,valid_from,source\ncustom,m,input,0,1500000,EUR,2026-01-01,x\n",
			}))(t)
		}, 1},
		{"a provider key comes", func() {
			provider = uuid.New()
			r.sql(`insert into provider_keys (tenant_id, provider_key_id, provider, name, status) values ($1, $2, 'practice', 'P', 'active')`, r.tenant, provider)(t)
		}, 1},
		{"a provider key gets a limit", func() {
			r.sql(`insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy, amount, mode, outage)
				values ($1, gen_random_uuid(), 'provider_key', $2, 0, 'requests', 'minute', 'bucket', 1, 'enforce', 'share')`, r.tenant, provider)(t)
		}, 1},
		{"a provider key is refused", func() {
			r.sql(`update provider_keys set status = 'invalid' where tenant_id = $1 and provider_key_id = $2`, r.tenant, provider)(t)
		}, 1},
		{"a pool is made", func() {
			pool = try(r.tenants.AddPool(t.Context(), r.tenant, tenants.NewPool{
				Name: "account", Keys: []uuid.UUID{provider}, Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 9}},
			}))(t).ID
		}, 1},
		{"a pool is renamed", func() {
			name := "organisation"
			try(r.tenants.ChangePool(t.Context(), r.tenant, pool, tenants.PoolChange{Name: &name}))(t)
		}, 1},
		{"a pool's limit changes", func() {
			r.sql(`update limits set amount = 8 where tenant_id = $1 and owner_kind = 'pool'`, r.tenant)(t)
		}, 1},
		{"an alias is made", func() {
			alias = try(r.tenants.AddAlias(t.Context(), r.tenant, tenants.NewAlias{Name: "fast", Candidates: []tenants.AliasCandidate{{Model: "m", Key: provider}}}))(t).ID
		}, 1},
		{"an alias is renamed", func() {
			name := "faster"
			try(r.tenants.ChangeAlias(t.Context(), r.tenant, alias, tenants.AliasChange{Name: &name}))(t)
		}, 1},
		{"an alias goes elsewhere", func() {
			try(r.tenants.ChangeAlias(t.Context(), r.tenant, alias, tenants.AliasChange{Candidates: &[]tenants.AliasCandidate{{Model: "m", Pool: pool}}}))(t)
		}, 1},
		{"a provider key leaves its pool", func() {
			try(r.tenants.ChangeProviderKey(t.Context(), r.tenant, provider, tenants.KeyChange{Pool: &uuid.Nil}))(t)
		}, 1},
		{"a pool goes", func() {
			if err := r.tenants.RemovePool(t.Context(), r.tenant, pool); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"an alias goes", func() {
			if err := r.tenants.RemoveAlias(t.Context(), r.tenant, alias); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a provider key goes", func() {
			if err := r.tenants.RemoveProviderKey(t.Context(), r.tenant, provider); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"the tenant is suspended", func() { r.sql(`update tenants set suspended_at = now() where tenant_id = $1`, r.tenant)(t) }, 1},
		{"the tenant is back", func() { r.sql(`update tenants set suspended_at = null where tenant_id = $1`, r.tenant)(t) }, 1},
		{"a subscription ends", func() {
			r.sql(`update subscriptions set status = 'ended', ended_at = now() where tenant_id = $1`, r.tenant)(t)
		}, 1},
		{"a key is rotated", func() {
			_, _, err := r.tenants.RotateAPIKey(t.Context(), r.tenant, r.key.ID, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a key is revoked", func() { try(r.tenants.RevokeAPIKey(t.Context(), r.tenant, r.key.ID))(t) }, 1},
	} {
		for _, d := range r.two { // everything is remembered, for minutes by now
			r.ask(d)
			r.clock.advance(20 * time.Second)
			r.catchUp(d)
			r.ask(d)
		}
		r.catchUp(r.two[0])
		c.change()
		for i, d := range r.two {
			before := d.Reads()
			r.catchUp(d)
			got, want := r.ask(d), r.ask(r.newDirectory())
			if diff := cmp.Diff(want, got, alike); diff != "" {
				t.Errorf("%s: replica %d: (-database +remembered)\n%s", c.name, i, diff)
			}
			if n := d.Reads() - before; n != c.reads {
				t.Errorf("%s: replica %d read %d parts again, not %d", c.name, i, n, c.reads)
			}
		}
	}
}

func TestALongTransactionThatCommitsLateIsNotMissed(t *testing.T) {
	r := newReplicas(t)
	for _, d := range r.two {
		r.ask(d)
	}
	conn := try(pgx.Connect(t.Context(), r.db.AppURL))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	long := try(conn.Begin(t.Context()))(t)
	for _, q := range []string{"select set_config('app.tenant_id', '" + r.tenant.String() + "', true)", "savepoint a", "update api_keys set revoked_at = now()", "release savepoint a"} {
		if _, err := long.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 { // others begin later and commit earlier; each is looked at
		name := fmt.Sprint("Ada ", i)
		try(r.tenants.ChangeCustomer(t.Context(), r.tenant, r.customer.ID, tenants.CustomerChange{Name: &name}))(t)
		r.clock.advance(time.Second)
		for _, d := range r.two {
			r.catchUp(d)
			if h := r.ask(d); h.Contract.Customer.Name != name || h.Codes[0] != "" {
				t.Fatalf("after change %d: %q, %q", i, h.Contract.Customer.Name, h.Codes)
			}
		}
	}
	if err := long.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, d := range r.two {
		r.catchUp(d)
		if h := r.ask(d); h.Codes[0] != "key_revoked" {
			t.Errorf("replica %d: %q", i, h.Codes[0])
		}
	}
}

func TestAChangeOfATenantWithManyKeysIsReadOnce(t *testing.T) {
	r := newReplicas(t)
	secrets := []string{r.key.Secret}
	for range 50 {
		secrets = append(secrets, try(r.tenants.AddAPIKey(t.Context(), r.tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: r.customer.ID, Name: "k"}))(t).Secret)
	}
	d := r.two[0]
	all := func() {
		t.Helper()
		var group sync.WaitGroup
		for _, s := range secrets {
			group.Go(func() {
				if _, err := d.Caller(t.Context(), s, ""); err != nil {
					t.Error(err)
				}
				if _, err := d.Contract(t.Context(), r.tenant, r.customer.ID); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	all()
	name := "Acme 2"
	try(r.tenants.Change(t.Context(), r.tenant, tenants.TenantChange{Name: &name}))(t)
	before := d.Reads()
	r.catchUp(d)
	all()
	if n := d.Reads() - before; n != 1 {
		t.Errorf("%d reads", n)
	}
	if c := try(d.Caller(t.Context(), secrets[0], ""))(t); c.Tenant.Name != name {
		t.Errorf("the tenant is called %q", c.Tenant.Name)
	}
}

func TestWhoSleptOrMetAnotherServerReliesOnNothing(t *testing.T) {
	r := newReplicas(t)
	d := r.two[0]
	for name, happens := range map[string]func(){
		"stopped for longer than changes are kept": func() { d.Sleep(auth.ChangesKept) },
		"another server, or another life of it":    d.Restarted,
	} {
		r.ask(d)
		r.clock.advance(2 * time.Second)
		r.catchUp(d)
		before := d.Reads()
		r.ask(d)
		if n := d.Reads() - before; n != 0 {
			t.Fatalf("%d reads though nothing happened", n)
		}
		happens()
		r.clock.advance(time.Millisecond)
		r.catchUp(d)
		r.clock.advance(time.Second)
		r.ask(d)
		if n := d.Reads() - before; n != 7 { // all but the secret, which never changes
			t.Errorf("%s: %d parts read again", name, n)
		}
	}
}

func TestAProcessThatCannotLookReadsAgainEverySecond(t *testing.T) {
	r := newReplicas(t)
	d := r.two[0]
	r.ask(d)
	r.clock.advance(time.Minute) // stopped, or the query fails
	try(r.tenants.RevokeAPIKey(t.Context(), r.tenant, r.key.ID))(t)
	if h := r.ask(d); h.Codes[0] != "key_revoked" {
		t.Errorf("got %q", h.Codes)
	}
}

func TestTheZonesInstantIsNotSleptThrough(t *testing.T) {
	r := newReplicas(t)
	d, zone := r.two[0], "Pacific/Auckland"
	tenant := try(r.tenants.Change(t.Context(), r.tenant, tenants.TenantChange{Zone: &zone}))(t)
	from, pending := tenant.Zones.Pending(r.clock.now())
	if !pending {
		t.Fatal("it is not pending")
	}
	r.catchUp(d)
	for _, at := range []struct {
		t    time.Time
		zone string
	}{{from.Add(-time.Millisecond), "UTC"}, {from, zone}} {
		r.clock.advance(at.t.Sub(r.clock.now()))
		r.catchUp(d)
		if h := r.ask(d); h.Caller.Tenant.Zone != at.zone || h.Contract.Tenant.Zone != at.zone {
			t.Errorf("at %s: %s and %s", at.t, h.Caller.Tenant.Zone, h.Contract.Tenant.Zone)
		}
	}
}

func TestAProvidersDaysAreItsOwnWhenTheTenantMoves(t *testing.T) {
	r := newReplicas(t)
	provider, zone := uuid.New(), "Pacific/Auckland"
	r.sql(`insert into provider_keys (tenant_id, provider_key_id, provider, name, status, zone) values ($1, $2, 'practice', 'P', 'active', 'America/Los_Angeles')`, r.tenant, provider)(t)
	r.sql(`insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy, amount, mode, outage)
		values ($1, gen_random_uuid(), 'provider_key', $2, 0, 'requests', 'day', 'calendar', 1, 'enforce', 'share')`, r.tenant, provider)(t)
	try(r.tenants.Change(t.Context(), r.tenant, tenants.TenantChange{Zone: &zone}))(t)
	l := try(r.two[0].Routes(t.Context(), r.tenant))(t)[0].Key.Limits[0]
	if l.Zone != "America/Los_Angeles" || len(l.PastZones) > 0 {
		t.Errorf("its days were in %v and are in %s", l.PastZones, l.Zone)
	}
}

// TestWhatWasCommittedBeforeALookIsSeenAfterIt has writers, lookers and callers
// at once: whoever begins to ask after a look that began after a commit sees it.
func TestWhatWasCommittedBeforeALookIsSeenAfterIt(t *testing.T) {
	const renames = 40
	r := newReplicas(t)
	var committed atomic.Int64
	var looked [2]atomic.Int64
	var group, writing sync.WaitGroup
	writing.Go(func() {
		for i := int64(1); i <= renames; i++ {
			name := fmt.Sprint(i)
			if _, err := r.rename(name); err != nil {
				t.Error(err)
			}
			committed.Store(i)
		}
	})
	for i, d := range r.two {
		group.Go(func() {
			for n := int64(0); n < renames; {
				n = committed.Load()
				if err := d.CatchUp(context.Background(), r.db.App); err != nil {
					t.Error(err)
					return
				}
				r.clock.advance(time.Millisecond)
				looked[i].Store(n)
			}
		})
		for range 2 {
			group.Go(func() {
				for last := int64(0); last < renames; {
					least := looked[i].Load()
					c, err := d.Caller(context.Background(), r.key.Secret, "")
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := fmt.Sscan(c.Key.Name, &last); c.Key.Name != "k" && err != nil || last < least {
						t.Errorf("replica %d: %q after %d was looked at: %v", i, c.Key.Name, least, err)
						return
					}
				}
			})
		}
	}
	writing.Wait()
	group.Wait()
}
