package tenants_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// gate is a provider that lets some credentials in, and keeps what it was shown.
type gate struct {
	mu   sync.Mutex
	lets string
	seen []string
	url  string
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{lets: oldSecret}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer "+g.lets {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	}))
	t.Cleanup(s.Close)
	g.url = s.URL + "/v1"
	return g
}

func (g *gate) set(lets string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lets, g.seen = lets, nil
}

func (g *gate) shown() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

const oldSecret, newSecret = "sk-canary-old-11111111", "sk-canary-new-22222222"

func secretOf(s string) *keyring.Secret {
	x := keyring.NewSecret(s)
	return &x
}

func keyAt(t *testing.T, f fixture, g *gate) tenants.ProviderKey {
	t.Helper()
	k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "custom", Name: "Main", BaseURL: g.url, Secret: *secretOf(oldSecret), Limits: *perMinute(5), Tier: "gold"})
	if err != nil || k.Status != tenants.Active {
		t.Fatalf("%+v, %v", k, err)
	}
	return k
}

func (f fixture) wants(t *testing.T, k tenants.ProviderKey, c tenants.KeyChange, code string) tenants.ProviderKey {
	t.Helper()
	got, err := f.ChangeProviderKey(t.Context(), f.tenant, k.ID, c)
	if code == "" && err != nil || code != "" && (err == nil || fault.Of(err).Code != code && fault.Of(err).Fields[0].Code != code) {
		t.Fatalf("got %v, want %q", err, code)
	}
	return got
}

func TestARotatedSecretIsCheckedFirstAndTakesOverTheSameLedgers(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	f.wants(t, k, tenants.KeyChange{Secret: secretOf(newSecret)}, "provider_key_invalid")
	if _, e, err := f.Endpoint(t.Context(), f.tenant, k.ID); err != nil || e.Secret.Scrub(oldSecret) == oldSecret {
		t.Fatalf("a refused secret took the old one's place: %v", err)
	}
	g.set(newSecret)
	got := f.wants(t, k, tenants.KeyChange{Secret: secretOf(newSecret)}, "")
	if got.ID != k.ID || got.Limits[0].Ledger("") != k.Limits[0].Ledger("") || got.Last4 != "2222" || got.Fingerprint == k.Fingerprint || got.Status != tenants.Active || got.Tier != "gold" {
		t.Errorf("%+v", got)
	}
	_, e, err := f.Endpoint(t.Context(), f.tenant, k.ID)
	if err != nil || e.Secret.Scrub(newSecret) == newSecret || e.Secret.Scrub(oldSecret) != oldSecret {
		t.Errorf("%v", err)
	}
	var entries []string
	in(t, f, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `select difference::text from audit_entries where tenant_id = $1`, f.tenant)
		if err != nil {
			return err
		}
		entries, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	all := strings.Join(entries, "\n")
	if strings.Contains(all, "canary") || !strings.Contains(all, `"last4": "2222"`) || !strings.Contains(all, `"last4_before": "1111"`) {
		t.Errorf("the audit says %s", all)
	}
	if b, _ := json.Marshal(got); strings.Contains(string(b), "canary") {
		t.Errorf("it can be read back: %s", b)
	}
}

func TestARefusedKeyWorksAgainOnceItIsRotated(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	if _, err := f.ReportFailure(t.Context(), f.tenant, k.ID, "m", limits.Failure{Status: 401, Sent: k.CreatedAt, At: k.CreatedAt}); err != nil {
		t.Fatal(err)
	}
	g.set(newSecret)
	if got := f.wants(t, k, tenants.KeyChange{Secret: secretOf(newSecret)}, ""); got.Status != tenants.Active || len(got.Cooldowns(k.CreatedAt)) != 0 {
		t.Errorf("%s %+v", got.Status, got.Health)
	}
}

// Threat A31: a secret only ever goes to the host that it was given for.
func TestAnotherHostNeedsTheSecretAgainAndIsShownNothingBefore(t *testing.T) {
	f, g, thief := newFixture(t), newGate(t), newGate(t)
	k := keyAt(t, f, g)
	f.wants(t, k, tenants.KeyChange{BaseURL: &thief.url}, "secret_required")
	port := strings.Replace(g.url, "http://127.0.0.1", "http://localhost", 1)
	f.wants(t, k, tenants.KeyChange{BaseURL: &port}, "secret_required")
	if now, err := f.ProviderKey(t.Context(), f.tenant, k.ID); err != nil || now.BaseURL != g.url || thief.shown() != 0 {
		t.Fatalf("%+v, %v; the other host was called %d times", now, err, thief.shown())
	}
	got := f.wants(t, k, tenants.KeyChange{BaseURL: &thief.url, Secret: secretOf(oldSecret)}, "")
	if got.BaseURL != thief.url || thief.shown() != 1 {
		t.Errorf("%+v", got)
	}
	deeper := thief.url + "/team"
	if got := f.wants(t, k, tenants.KeyChange{BaseURL: &deeper}, ""); got.BaseURL != deeper || got.Last4 != "1111" {
		t.Errorf("another path of the same host: %+v", got)
	}
	thief.set("somebody else's")
	f.wants(t, k, tenants.KeyChange{BaseURL: &thief.url}, "provider_key_invalid")
}

func TestWrongAddressesAndSecretsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	g.set(oldSecret)
	for name, c := range map[string]struct {
		change tenants.KeyChange
		code   string
	}{
		"metadata":          {tenants.KeyChange{BaseURL: new("http://169.254.169.254/v1"), Secret: secretOf(newSecret)}, "url_not_allowed"},
		"a line break":      {tenants.KeyChange{BaseURL: new(g.url + "\r\nX: y"), Secret: secretOf(newSecret)}, "url_not_allowed"},
		"no address":        {tenants.KeyChange{BaseURL: new("")}, "required"},
		"a header's end":    {tenants.KeyChange{Secret: secretOf("sk-a\r\nX: y")}, "bad_characters"},
		"NUL":               {tenants.KeyChange{Secret: secretOf("sk-a\x00b")}, "bad_characters"},
		"no secret":         {tenants.KeyChange{Secret: secretOf("")}, "required"},
		"a tier with a tab": {tenants.KeyChange{Tier: new("a\tb")}, "bad_characters"},
	} {
		t.Run(name, func(t *testing.T) { f.wants(t, k, c.change, c.code) })
	}
	practice, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "practice", Name: "P"})
	if err != nil {
		t.Fatal(err)
	}
	f.wants(t, practice, tenants.KeyChange{Secret: secretOf(newSecret)}, "not_for_this_kind")
	if g.shown() != 0 {
		t.Errorf("the provider was called %d times", g.shown())
	}
}

func TestAKeyThatIsSwitchedOffIsNoRouteAndStaysOffUntilItIsSwitchedOn(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	if got := f.wants(t, k, tenants.KeyChange{Disabled: new(true)}, ""); got.Status != tenants.Disabled {
		t.Fatalf("%+v", got)
	}
	if routes, err := f.Routes(t.Context(), f.tenant); err != nil || len(routes) != 0 {
		t.Errorf("%+v, %v", routes, err)
	}
	if got, err := f.VerifyProviderKey(t.Context(), f.tenant, k.ID); err != nil || got.Status != tenants.Disabled {
		t.Errorf("a check switched it on: %+v, %v", got, err)
	}
	g.set(newSecret)
	if got := f.wants(t, k, tenants.KeyChange{Secret: secretOf(newSecret)}, ""); got.Status != tenants.Disabled || got.Last4 != "2222" {
		t.Errorf("a rotation switched it on: %+v", got)
	}
	if got := f.wants(t, k, tenants.KeyChange{Disabled: new(false)}, ""); got.Status != tenants.Active || g.shown() != 2 {
		t.Errorf("%+v after %d checks", got, g.shown())
	}
	g.set("somebody else's")
	f.wants(t, k, tenants.KeyChange{Disabled: new(true)}, "")
	if got := f.wants(t, k, tenants.KeyChange{Disabled: new(false)}, ""); got.Status != tenants.Invalid {
		t.Errorf("%+v", got)
	}
}

func TestASecretThatNoLongerOpensIsReplacedByRotation(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	in(t, f, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update provider_keys set sealed_secret = set_byte(sealed_secret, length(sealed_secret) - 1, 255 - get_byte(sealed_secret, length(sealed_secret) - 1)) where provider_key_id = $1`, k.ID)
		return err
	})
	if _, _, err := f.Endpoint(t.Context(), f.tenant, k.ID); err == nil || fault.Of(err).Code != "credential_unavailable" {
		t.Fatalf("%v", err)
	}
	g.set(newSecret)
	f.wants(t, k, tenants.KeyChange{Secret: secretOf(newSecret)}, "")
	if _, _, err := f.Endpoint(t.Context(), f.tenant, k.ID); err != nil {
		t.Error(err)
	}
}

func TestOfTwoRotationsAtOnceOneIsToldThatItLost(t *testing.T) {
	f, g := newFixture(t), newGate(t)
	k := keyAt(t, f, g)
	g.set(newSecret)
	codes := make(chan string, 8)
	var group sync.WaitGroup
	for range cap(codes) {
		group.Go(func() {
			_, err := f.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Secret: secretOf(newSecret)})
			if err == nil {
				codes <- ""
			} else {
				codes <- fault.Of(err).Code
			}
		})
	}
	group.Wait()
	close(codes)
	won := 0
	for c := range codes {
		switch c {
		case "":
			won++
		case "key_changed":
		default:
			t.Errorf("got %q", c)
		}
	}
	if won == 0 {
		t.Error("nobody rotated")
	}
	if _, e, err := f.Endpoint(t.Context(), f.tenant, k.ID); err != nil || e.Secret.Scrub(newSecret) == newSecret {
		t.Errorf("%v", err)
	}
}
