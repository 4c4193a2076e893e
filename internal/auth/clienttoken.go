package auth

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// How long a client token lives.
const (
	DefaultTokenLife = 15 * time.Minute
	MaxTokenLife     = 24 * time.Hour
)

const tokenAudience = "weir"

// ClientToken is what a client token narrows: it stands for its API key, for a
// while, with fewer models and more limits.
type ClientToken struct {
	ID        uuid.UUID // jti; ledgers of its limits hang on it
	Tenant    uuid.UUID
	Key       uuid.UUID
	Models    []string // nil: every model of the key
	Limits    []limits.Limit
	ExpiresAt time.Time
}

// TokenKeys sign and verify client tokens: Ed25519 keys derived (HKDF-SHA256)
// from the operator's secrets, so that every replica has the same ones and none
// is stored. The first signs; each verifies, so that secrets rotate with
// overlap. It is safe for concurrent use.
type TokenKeys struct {
	issuer  string
	current string
	private map[string]ed25519.PrivateKey
	order   []string
	now     func() time.Time
}

// Secret is one of the operator's secrets, by its id.
type Secret struct {
	ID    string
	Bytes []byte
}

// NewTokenKeys derives the keys. issuer is the address of the installation.
func NewTokenKeys(secrets []Secret, issuer string, now func() time.Time) (*TokenKeys, error) {
	k := &TokenKeys{issuer: issuer, private: map[string]ed25519.PrivateKey{}, now: now}
	for _, s := range secrets {
		seed, err := hkdf.Key(sha256.New, s.Bytes, nil, "weir client tokens v1", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("token key %s: %w", s.ID, err)
		}
		k.private[s.ID] = ed25519.NewKeyFromSeed(seed)
		k.order = append(k.order, s.ID)
	}
	k.current = secrets[0].ID
	return k, nil
}

// claims are RFC 7519's and ours.
type claims struct {
	jwt.RegisteredClaims
	Tenant string         `json:"ten"`
	Models []string       `json:"models,omitempty"`
	Limits []limits.Limit `json:"limits,omitempty"`
}

// Mint signs a token for a key. It says nothing but who, until when and what is
// narrower.
func (k *TokenKeys) Mint(t ClientToken) (string, error) {
	now := k.now()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: k.issuer, Audience: jwt.ClaimStrings{tokenAudience}, Subject: id.APIKey.Format(t.Key), ID: t.ID.String(),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(t.ExpiresAt),
		},
		Tenant: id.Tenant.Format(t.Tenant), Models: t.Models, Limits: t.Limits,
	})
	token.Header["kid"] = k.current
	return token.SignedString(k.private[k.current])
}

// looksLikeToken tells a JWT from an API key.
func looksLikeToken(s string) bool {
	return strings.HasPrefix(s, "ey") && strings.Count(s, ".") == 2
}

// Read verifies a token: EdDSA only, one of our keys by its id, our issuer and
// audience, between nbf and exp. Everything else is Unauthenticated
// invalid_api_key; nothing is ever fetched.
func (k *TokenKeys) Read(token string) (ClientToken, error) {
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, k.verifyingKey,
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithAudience(tokenAudience), jwt.WithIssuer(k.issuer),
		jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithTimeFunc(k.now), jwt.WithStrictDecoding())
	if err != nil {
		return ClientToken{}, badToken(err)
	}
	t := ClientToken{Models: c.Models, Limits: c.Limits, ExpiresAt: c.ExpiresAt.Time}
	var wrong [3]error
	t.ID, wrong[0] = uuid.Parse(c.ID)
	t.Tenant, wrong[1] = id.Tenant.Parse(c.Tenant)
	t.Key, wrong[2] = id.APIKey.Parse(c.Subject)
	if err := errors.Join(wrong[:]...); err != nil {
		return ClientToken{}, badToken(err)
	}
	return t, nil
}

func (k *TokenKeys) verifyingKey(t *jwt.Token) (any, error) {
	kid, _ := t.Header["kid"].(string)
	private, known := k.private[kid]
	if !known {
		return nil, errors.New("no such key")
	}
	return private.Public(), nil
}

func badToken(err error) error {
	message := "This client token is not valid."
	if errors.Is(err, jwt.ErrTokenExpired) {
		message = "This client token has expired; ask for a new one."
	}
	return fault.New(fault.Unauthenticated, "invalid_api_key", message).Because(err)
}

// JWK is one public key (RFC 8037).
type JWK struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// JWKS are the public keys that verify client tokens, the signing one first.
func (k *TokenKeys) JWKS() []JWK {
	out := make([]JWK, len(k.order))
	for i, name := range k.order {
		public := k.private[name].Public().(ed25519.PublicKey)
		out[i] = JWK{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(public), name, "sig", jwt.SigningMethodEdDSA.Alg()}
	}
	return out
}
