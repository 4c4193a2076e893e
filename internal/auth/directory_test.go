package auth_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type fixture struct {
	t         testing.TB
	clock     *clock
	db        postgrestest.Database
	tenants   *tenants.Service
	directory *auth.Directory
	tenant    uuid.UUID
	made      tenants.Created
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	db, c := postgrestest.New(t), &clock{t: time.Now()}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s := tenants.New(db.App, ring, nil, nil, c.now)
	made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example"})
	if err != nil {
		t.Fatal(err)
	}
	return fixture{t, c, db, s, auth.NewDirectory(db.App, s, billing.New(db.App, c.now), tokenKeys(t, c.now, "https://w.example", "a"), c.now), made.Tenant.ID, made}
}

func (f fixture) code(secret, ip string) string {
	f.t.Helper()
	_, err := f.directory.Caller(f.t.Context(), secret, ip)
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func TestARevokedKeyIsRefusedWithinASecond(t *testing.T) {
	f := newFixture(t)
	secret := f.made.ManagementKey.Secret
	if got := f.code(secret, "192.0.2.1"); got != "" {
		t.Fatalf("refused with %s", got)
	}
	if _, err := f.tenants.RevokeAPIKey(t.Context(), f.tenant, f.made.ManagementKey.ID); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Second)
	if got := f.code(secret, "192.0.2.1"); got != "key_revoked" {
		t.Fatalf("a second later: %q", got)
	}
}

func TestASuspendedTenantsKeysAreRefusedWithinASecond(t *testing.T) {
	f := newFixture(t)
	secret := f.made.ManagementKey.Secret
	if got := f.code(secret, ""); got != "" {
		t.Fatalf("refused with %s", got)
	}
	if err := f.db.App.WithTenant(t.Context(), f.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update tenants set suspended_at = now()")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Second)
	if got := f.code(secret, ""); got != "tenant_suspended" {
		t.Fatalf("a second later: %q", got)
	}
}

func TestAKeyEndsAtItsExpiryAndWorksFromItsAddressesOnly(t *testing.T) {
	f := newFixture(t)
	end := f.clock.now().Add(time.Minute)
	k, err := f.tenants.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{
		Kind: tenants.Management, Name: "x", Scopes: []string{"*"}, ExpiresAt: &end, IPAllow: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]string{"203.0.113.9": "", "::ffff:203.0.113.9": "", "2001:db8::7": "", "198.51.100.1": "ip_not_allowed", "": "ip_not_allowed", "203.0.113.9, 1.1.1.1": "ip_not_allowed"} {
		if got := f.code(k.Secret, ip); got != want {
			t.Errorf("from %q: %q, want %q", ip, got, want)
		}
	}
	f.clock.advance(time.Minute)
	if got := f.code(k.Secret, "203.0.113.9"); got != "key_expired" {
		t.Errorf("at its end: %q", got)
	}
}

func TestWhileTheDatabaseIsOutKnownKeysServeFiveMinutesAndUnknownOnesAreNoLie(t *testing.T) {
	f := newFixture(t)
	secret := f.made.ManagementKey.Secret
	if got := f.code(secret, ""); got != "" {
		t.Fatalf("refused with %s", got)
	}
	defer f.db.Outage(t)()
	f.clock.advance(4 * time.Minute)
	if got := f.code(secret, ""); got != "" {
		t.Errorf("a known key: %q", got)
	}
	f.clock.advance(2 * time.Minute)
	if _, err := f.directory.Caller(t.Context(), secret, ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after six minutes: %v", err)
	}
}

func TestACustomerWithoutASubscriptionIsNeverUnlimited(t *testing.T) {
	f := newFixture(t)
	c, err := f.tenants.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Ada"})
	if err != nil {
		t.Fatal(err)
	}
	contract, err := f.directory.Contract(t.Context(), f.tenant, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := fault.Of(contract.RequireActive()); got == nil || got.Kind != fault.Forbidden || got.Code != "no_active_subscription" {
		t.Fatalf("got %v", got)
	}
	if _, err := f.directory.Contract(t.Context(), f.tenant, id.New()); !fault.Is(err, fault.NotFound) {
		t.Fatalf("an unknown customer: %v", err)
	}
}

func TestALinkOpensOneSessionAndASessionEndsByIdlenessAgeAndRemoval(t *testing.T) {
	f := newFixture(t)
	s := auth.NewSessions(f.db.App, f.clock.now)
	won := make(chan auth.Issued, 8)
	var group sync.WaitGroup
	for range cap(won) {
		group.Go(func() {
			if issued, err := s.SignIn(t.Context(), f.made.SignInToken, "test", "192.0.2.1"); err == nil {
				won <- issued
			} else if fault.Of(err).Code != "token_invalid" {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Fatalf("%d sign-ins", len(won))
	}
	session := (<-won).Token
	p, err := s.Person(t.Context(), session)
	if err != nil || p.Tenant != f.tenant || p.Role != "owner" || p.User.Email != "ann@acme.example" {
		t.Fatalf("got %+v, %v", p, err)
	}
	for range 3 { // used all along, it does not go idle
		f.clock.advance(11 * time.Hour)
		if _, err := s.Person(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	f.clock.advance(12*time.Hour + time.Second)
	if _, err := s.Person(t.Context(), session); !fault.Is(err, fault.Unauthenticated) {
		t.Fatalf("idle: %v", err)
	}
}
