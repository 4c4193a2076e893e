package tenants_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

type fixture struct {
	*tenants.Service
	db     postgrestest.Database
	tenant uuid.UUID
	made   tenants.Created
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	t.Cleanup(guard.Close)
	s := tenants.New(db.App, ring, guard, catalogue.NewClient(guard), time.Now)
	made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "Ann@Acme.example", Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	return fixture{s, db, made.Tenant.ID, made}
}

// provider is an upstream whose list of models answers with a status.
func provider(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestAProviderKeyIsCheckedLiveAndKeptWhateverTheCheckSays(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		status int
		body   string
		want   tenants.Status
		models int
	}{
		"good":    {200, `{"data":[{"id":"b"},{"id":"a"},{"id":"a"},{"id":"has space"}]}`, tenants.Active, 2},
		"refused": {401, `{"error":{"message":"Incorrect API key provided: sk-canary-0123456789"}}`, tenants.Invalid, 0},
		"broken":  {500, `oops`, tenants.Unverified, 0},
		"no list": {200, `<html>`, tenants.Unverified, 0},
	} {
		k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "custom", Name: name, BaseURL: provider(t, c.status, c.body), Secret: keyring.NewSecret("sk-canary-0123456789")})
		if err != nil || k.Status != c.want || len(k.Models) != c.models {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		if strings.Contains(k.StatusReason, "canary") {
			t.Errorf("%s: the reason holds the key: %s", name, k.StatusReason)
		}
		if k.Last4 != "6789" || len(k.Fingerprint) != 16 {
			t.Errorf("%s: shows %q, %q", name, k.Last4, k.Fingerprint)
		}
	}
}

func TestAStoredProviderKeyIsSealedAndOpensOnlyInItsOwnRow(t *testing.T) {
	f := newFixture(t)
	url := provider(t, 200, `{"data":[]}`)
	var keys []tenants.ProviderKey
	for _, name := range []string{"one", "two"} {
		k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "custom", Name: name, BaseURL: url, Secret: keyring.NewSecret("sk-canary-" + name)})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	var sealed []byte
	in(t, f, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select sealed_secret from provider_keys where provider_key_id = $1`, keys[0].ID).Scan(&sealed)
	})
	if len(sealed) < 17 || bytes.Contains(sealed, []byte("canary")) {
		t.Fatalf("stored %q", sealed)
	}
	_, e, err := f.Endpoint(t.Context(), f.tenant, keys[0].ID)
	if err != nil || e.Secret.Scrub("sk-canary-one") == "sk-canary-one" {
		t.Fatalf("got %+v, %v", e, err)
	}
	in(t, f, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update provider_keys set sealed_secret = $2 where provider_key_id = $1`, keys[1].ID, sealed)
		return err
	})
	if _, _, err := f.Endpoint(t.Context(), f.tenant, keys[1].ID); err == nil || fault.Of(err).Code != "credential_unavailable" {
		t.Fatalf("a moved secret: %v", err)
	}
	routes, err := f.Routes(t.Context(), f.tenant)
	if err != nil || len(routes) != 2 || routes[0].Broken != nil || routes[1].Broken == nil {
		t.Fatalf("routes %+v, %v", routes, err)
	}
}

func in(t *testing.T, f fixture, do func(tx pgx.Tx) error) {
	t.Helper()
	if err := f.db.App.WithTenant(t.Context(), f.tenant, do); err != nil {
		t.Fatal(err)
	}
}

func TestARemovedProviderKeyForgetsItsSecretAndFreesItsName(t *testing.T) {
	f := newFixture(t)
	n := tenants.NewProviderKey{Provider: "practice", Name: "Practice"}
	k, err := f.AddProviderKey(t.Context(), f.tenant, n)
	if err != nil || k.Status != tenants.Active {
		t.Fatalf("%+v, %v", k, err)
	}
	if _, err := f.AddProviderKey(t.Context(), f.tenant, n); err == nil || fault.Of(err).Code != "name_taken" {
		t.Fatalf("the same name: %v", err)
	}
	if err := f.RemoveProviderKey(t.Context(), f.tenant, k.ID); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveProviderKey(t.Context(), f.tenant, k.ID); !fault.Is(err, fault.NotFound) {
		t.Fatalf("again: %v", err)
	}
	if _, err := f.AddProviderKey(t.Context(), f.tenant, n); err != nil {
		t.Fatal(err)
	}
}

func TestAnInventedOrMistypedKeyIsKnownByItsChecksum(t *testing.T) {
	f := newFixture(t)
	good := f.made.ManagementKey.Secret
	if !tenants.WellFormed(good) || !strings.HasPrefix(good, "weir_live_") || len(good) != 46 {
		t.Fatalf("%q", good)
	}
	for i := range good {
		bad := []byte(good)
		bad[i] ^= 1
		if tenants.WellFormed(string(bad)) {
			t.Errorf("a change at %d is not noticed", i)
		}
	}
	for _, bad := range []string{"", "weir_live_", good + "x", strings.Repeat("a", 46), "sk-" + good, strings.Repeat("x", 10_000), "' or 1=1 --"} {
		if tenants.WellFormed(bad) {
			t.Errorf("%.60q is well formed", bad)
		}
	}
}

func TestAKeyOfTheWrongKindOrWithWrongFieldsIsRefusedFieldByField(t *testing.T) {
	f := newFixture(t)
	past := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		n    tenants.NewAPIKey
		want string
	}{
		"customer without customer": {tenants.NewAPIKey{Kind: tenants.ForCustomer, Name: "x"}, "/customer"},
		"scopes on a customer key":  {tenants.NewAPIKey{Kind: tenants.ForCustomer, Name: "x", Customer: id.New(), Scopes: []string{"*"}}, "/scopes"},
		"no scopes":                 {tenants.NewAPIKey{Kind: tenants.Management, Name: "x"}, "/scopes"},
		"unknown scope":             {tenants.NewAPIKey{Kind: tenants.Management, Name: "x", Scopes: []string{"all"}}, "/scopes/0"},
		"expired":                   {tenants.NewAPIKey{Kind: tenants.Management, Name: "x", Scopes: []string{"*"}, ExpiresAt: &past}, "/expires_at"},
		"no models":                 {tenants.NewAPIKey{Kind: tenants.ForCustomer, Name: "x", Customer: id.New(), Models: []string{}}, "/models"},
		"a limit that is none":      {tenants.NewAPIKey{Kind: tenants.ForCustomer, Name: "x", Customer: id.New(), Limits: []limits.Limit{{Dimension: "requests", Window: "minute", Amount: -1}}}, "/limits/0/amount"},
		"no name":                   {tenants.NewAPIKey{Kind: tenants.Management, Scopes: []string{"*"}}, "/name"},
		"a name that breaks lines":  {tenants.NewAPIKey{Kind: tenants.Management, Name: "a\r\nb", Scopes: []string{"*"}}, "/name"},
	} {
		_, err := f.AddAPIKey(t.Context(), f.tenant, c.n)
		if g := fault.Of(err); g == nil || g.Kind != fault.Invalid || len(g.Fields) == 0 || g.Fields[0].Pointer != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Name: "x", Customer: id.New()}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown customer: %v", err)
	}
}

func TestEveryChangeLeavesAnEntryInAChain(t *testing.T) {
	f := newFixture(t)
	ctx := tenants.WithActor(t.Context(), tenants.Actor{Kind: "api_key", ID: id.New(), Credential: "…abcd", IP: "192.0.2.1", RequestID: id.New()})
	done := make(chan error, 20)
	for i := range cap(done) {
		go func() {
			_, err := f.AddCustomer(ctx, f.tenant, tenants.NewCustomer{Name: fmt.Sprint("C", i)})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	var entries, linked int
	in(t, f, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `
			select count(*), count(*) filter (where b.hash is not null or a.position = 1)
			from audit_entries a
			left join audit_entries b on b.tenant_id = a.tenant_id and b.position = a.position - 1 and b.hash = a.prev_hash
			where a.tenant_id = $1`, f.tenant).Scan(&entries, &linked)
	})
	if entries != cap(done)+1 || linked != entries {
		t.Fatalf("%d entries, %d linked", entries, linked)
	}
}

func TestOfTwoCustomersWithOneExternalIDOneIsMade(t *testing.T) {
	f := newFixture(t)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			_, err := f.AddCustomer(context.Background(), f.tenant, tenants.NewCustomer{Name: "C", ExternalID: "same"})
			done <- err
		}()
	}
	made := 0
	for range cap(done) {
		switch err := <-done; {
		case err == nil:
			made++
		case fault.Of(err).Code != "external_id_taken":
			t.Errorf("got %v", err)
		}
	}
	if made != 1 {
		t.Fatalf("%d were made", made)
	}
}

func TestOnlyOneTenantIsTheOperators(t *testing.T) {
	f := newFixture(t)
	n := tenants.NewTenant{Name: "Zero", OwnerEmail: "op@weir.example", Operator: true}
	if _, err := f.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), n); err == nil || fault.Of(err).Code != "operator_exists" {
		t.Fatalf("got %v", err)
	}
}

func TestPagesOfAListHoldEveryRowOnce(t *testing.T) {
	f := newFixture(t)
	want := map[uuid.UUID]bool{}
	for i := range 23 {
		c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		want[c.ID] = true
	}
	after := uuid.Nil
	for pages := 1; ; pages++ {
		p, err := f.Customers(t.Context(), f.tenant, after, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Items {
			if !want[c.ID] {
				t.Fatalf("%v comes twice, or from nowhere", c.ID)
			}
			delete(want, c.ID)
		}
		if after = p.Next; after == uuid.Nil {
			if pages != 5 || len(want) != 0 {
				t.Fatalf("%d pages, %d missing", pages, len(want))
			}
			return
		}
	}
}

func TestPostgresOutIsSaidSo(t *testing.T) {
	db, err := postgres.Open(t.Context(), "postgres://nobody@127.0.0.1:1/x", postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = tenants.New(db, nil, nil, nil, time.Now).Get(t.Context(), id.New())
	if f := fault.Of(err); f.Kind != fault.Unavailable || f.Code != "database_unavailable" || f.RetryAfter == 0 {
		t.Fatalf("got %v", err)
	}
}
