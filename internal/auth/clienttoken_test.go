package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
)

func secret(name string) auth.Secret {
	return auth.Secret{ID: name, Bytes: []byte(strings.Repeat(name, 32))[:32]}
}

func tokenKeys(t testing.TB, now func() time.Time, issuer string, names ...string) *auth.TokenKeys {
	t.Helper()
	var secrets []auth.Secret
	for _, n := range names {
		secrets = append(secrets, secret(n))
	}
	k, err := auth.NewTokenKeys(secrets, issuer, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAClientTokenReadsAsItWasMintedUntilItsEndAndAcrossARotation(t *testing.T) {
	c := &clock{t: time.Now().UTC().Truncate(time.Second)}
	old := tokenKeys(t, c.now, "https://w.example", "a")
	want := auth.ClientToken{ID: id.New(), Tenant: id.New(), Key: id.New(), Models: []string{"m"}, ExpiresAt: c.now().Add(time.Minute)}
	token, err := old.Mint(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tokenKeys(t, c.now, "https://w.example", "b", "a").Read(token)
	got.ExpiresAt = got.ExpiresAt.UTC()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	if _, err := tokenKeys(t, c.now, "https://w.example", "b").Read(token); err == nil {
		t.Error("a retired key verifies")
	}
	c.advance(time.Minute)
	if _, err := old.Read(token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("at its end: %v", err)
	}
}

func TestNoOtherTokenPasses(t *testing.T) {
	c := &clock{t: time.Now()}
	keys := tokenKeys(t, c.now, "https://w.example", "a")
	x, err := base64.RawURLEncoding.DecodeString(keys.JWKS()[0].X)
	if err != nil {
		t.Fatal(err)
	}
	public := ed25519.PublicKey(x)
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		m := jwt.MapClaims{
			"iss": "https://w.example", "aud": "weir", "sub": id.APIKey.Format(id.New()), "ten": id.Tenant.Format(id.New()),
			"jti": id.New().String(), "nbf": c.now().Unix(), "exp": c.now().Add(time.Minute).Unix(),
		}
		change(m)
		return m
	}
	same := func(jwt.MapClaims) {}
	sign := func(method jwt.SigningMethod, key any, kid any, m jwt.MapClaims) string {
		token := jwt.NewWithClaims(method, m)
		token.Header["kid"], token.Header["jku"], token.Header["x5u"] = kid, "http://127.0.0.1:1/jwks", "http://127.0.0.1:1/x"
		s, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, token := range map[string]string{
		"alg none":           sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "a", claims(same)),
		"hmac of the public": sign(jwt.SigningMethodHS256, []byte(public), "a", claims(same)),
		"somebody else's":    sign(jwt.SigningMethodEdDSA, foreign, "a", claims(same)),
		"no kid":             sign(jwt.SigningMethodEdDSA, foreign, nil, claims(same)),
		"a path as kid":      sign(jwt.SigningMethodEdDSA, foreign, "../../etc/passwd", claims(same)),
		"sql as kid":         sign(jwt.SigningMethodEdDSA, foreign, "a' or '1'='1", claims(same)),
		"garbage":            "eyJ.eyJ.x",
	} {
		if _, err := keys.Read(token); !fault.Is(err, fault.Unauthenticated) || strings.Contains(fault.Of(err).Message, "eyJ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, issuer := range []string{"https://other.example"} {
		token, err := tokenKeys(t, c.now, issuer, "a").Mint(auth.ClientToken{ID: id.New(), Tenant: id.New(), Key: id.New(), ExpiresAt: c.now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Read(token); err == nil {
			t.Error("another installation's token passes")
		}
	}
}
