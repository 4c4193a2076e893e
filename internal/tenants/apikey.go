package tenants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
)

// KeyKind says what an API key is for; neither kind does the other's work.
type KeyKind string

// The kinds of API key.
const (
	ForCustomer KeyKind = "customer"   // gateway and decision API
	Management  KeyKind = "management" // REST API
)

// APIKey is a credential of ours. Its secret is not kept.
type APIKey struct {
	ID         uuid.UUID
	Counter    uuid.UUID // usage and ledgers hang on this; a rotated pair shares it
	Kind       KeyKind
	Customer   uuid.UUID // of a customer key
	Name       string
	First4     string
	Last4      string
	Test       bool     // reaches the practice provider only
	MaySettle  bool     // a customer key that may settle its own reservations
	Scopes     []string // of a management key
	Models     []string // nil: every model
	IPAllow    []netip.Prefix
	Limits     []limits.Limit
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	ReplacedBy uuid.UUID // the key that took over when it was rotated; zero: none
	LastUsedAt *time.Time
}

// IssuedKey is a new key with its secret, which is shown this once.
type IssuedKey struct {
	APIKey
	Secret string
}

// NewAPIKey is what a key starts from.
type NewAPIKey struct {
	ID        uuid.UUID // chosen by a caller who may ask twice; zero: a new one
	Counter   uuid.UUID // of the key that it takes over from; zero: its own
	Kind      KeyKind
	Customer  uuid.UUID
	Name      string
	Test      bool
	MaySettle bool
	Scopes    []string
	Models    []string
	IPAllow   []netip.Prefix
	Limits    []limits.Limit
	ExpiresAt *time.Time
}

// AddAPIKey makes a key and returns its secret, once. Asked again with the same
// ID it is a Conflict already_made, and makes nothing.
func (s *Service) AddAPIKey(ctx context.Context, tenant uuid.UUID, n NewAPIKey) (IssuedKey, error) {
	var k IssuedKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		k, err = s.AddAPIKeyTx(ctx, tx, tenant, n)
		return err
	})
	return k, err
}

// AddAPIKeyTx is AddAPIKey for a caller who owns the transaction.
func (s *Service) AddAPIKeyTx(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n NewAPIKey) (IssuedKey, error) {
	n, err := n.checked(s.now())
	if err != nil {
		return IssuedKey{}, err
	}
	if n.Kind == ForCustomer {
		if _, err := ReadCustomer(ctx, tx, tenant, n.Customer); err != nil {
			return IssuedKey{}, err
		}
	}
	k, err := s.insertKey(ctx, tx, tenant, n)
	if err != nil {
		return IssuedKey{}, conflict(err)
	}
	if err := tellKey(ctx, tx, tenant, message.APIKeyCreated, k.APIKey); err != nil {
		return k, err
	}
	return k, Audit(ctx, tx, tenant, "api_key.created", id.APIKey.Format(k.ID), map[string]string{"name": k.Name, "kind": string(k.Kind), "last4": k.Last4})
}

func (s *Service) insertKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n NewAPIKey) (IssuedKey, error) {
	secret := newSecret(n.Test)
	k := IssuedKey{Secret: secret, APIKey: APIKey{
		ID: n.ID, Kind: n.Kind, Customer: n.Customer, Name: n.Name, Test: n.Test, MaySettle: n.MaySettle, Scopes: n.Scopes, Models: n.Models,
		IPAllow: n.IPAllow, CreatedAt: s.now().UTC().Truncate(time.Microsecond), ExpiresAt: n.ExpiresAt,
	}}
	if k.ID == uuid.Nil {
		k.ID = id.New()
	}
	if k.Counter = n.Counter; k.Counter == uuid.Nil {
		k.Counter = k.ID
	}
	k.First4, k.Last4 = shown(secret)
	if k.Scopes == nil {
		k.Scopes = []string{}
	}
	_, err := tx.Exec(ctx, `
		insert into api_keys (tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4,
		                      test, may_settle, scopes, models, ip_allow, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		tenant, k.ID, k.Counter, string(k.Kind), optional(k.Customer), k.Name, HashSecret(secret), k.First4, k.Last4,
		k.Test, k.MaySettle, k.Scopes, k.Models, k.IPAllow, k.CreatedAt, k.ExpiresAt)
	if err != nil {
		return k, err
	}
	stored, err := AddLimits(ctx, tx, tenant, OwnedByAPIKey, k.ID, n.Limits)
	k.Limits = k.placed(stored)
	return k, err
}

// placed puts the key's limits at its scope. The ledger hangs on the counter,
// so that a rotation resets nothing.
func (k APIKey) placed(list []limits.Limit) []limits.Limit {
	return Placed(list, limits.Scope{Kind: limits.ScopeAPIKey, ID: k.Counter, Name: k.Name})
}

const keyColumns = `api_key_id, counter_id, kind, customer_id, name, first4, last4, test, may_settle, scopes, models, ip_allow,
	created_at, expires_at, revoked_at, replaced_by, last_used_at`

func scanKey(row pgx.CollectableRow) (k APIKey, err error) {
	var customer, replacedBy *uuid.UUID
	err = row.Scan(&k.ID, &k.Counter, &k.Kind, &customer, &k.Name, &k.First4, &k.Last4, &k.Test, &k.MaySettle, &k.Scopes, &k.Models, &k.IPAllow,
		&k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &replacedBy, &k.LastUsedAt)
	if customer != nil {
		k.Customer = *customer
	}
	if replacedBy != nil {
		k.ReplacedBy = *replacedBy
	}
	return k, err
}

// APIKey reads one key with its limits.
func (s *Service) APIKey(ctx context.Context, tenant, key uuid.UUID) (APIKey, error) {
	var k APIKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		k, err = ReadAPIKey(ctx, tx, tenant, key)
		return err
	})
	return k, err
}

// ReadAPIKey is APIKey for a caller who owns the transaction.
func ReadAPIKey(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID) (APIKey, error) {
	rows, err := tx.Query(ctx, `
		select `+keyColumns+` from api_keys
		where tenant_id = $1 and api_key_id = $2`, tenant, key)
	if err != nil {
		return APIKey{}, err
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, NotFound("API key")
	}
	if err != nil {
		return k, err
	}
	byOwner, err := LimitsOf(ctx, tx, tenant, OwnedByAPIKey, []uuid.UUID{key})
	k.Limits = k.placed(byOwner[key])
	return k, err
}

// KeyFilter narrows a list of keys; zero fields do not.
type KeyFilter struct {
	Kind     KeyKind
	Customer uuid.UUID
}

// APIKeys lists keys with their limits, newest first, after an id.
func (s *Service) APIKeys(ctx context.Context, tenant uuid.UUID, f KeyFilter, after uuid.UUID, limit int) (Page[APIKey], error) {
	var list []APIKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+keyColumns+` from api_keys
			where tenant_id = $1 and api_key_id < $2
			  and ($3 = '' or kind = $3) and ($4::uuid is null or customer_id = $4)
			order by api_key_id desc limit $5`, tenant, After(after), string(f.Kind), optional(f.Customer), limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanKey); err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(list))
		for i, k := range list {
			ids[i] = k.ID
		}
		byOwner, err := LimitsOf(ctx, tx, tenant, OwnedByAPIKey, ids)
		for i, k := range list {
			list[i].Limits = k.placed(byOwner[k.ID])
		}
		return err
	})
	return PageOf(list, limit, func(k APIKey) uuid.UUID { return k.ID }), err
}

// RevokeAPIKey ends a key now, and with it every one that it shares its counter
// with: what was rotated ends as a whole. Revoking it again changes nothing.
func (s *Service) RevokeAPIKey(ctx context.Context, tenant, key uuid.UUID) (APIKey, error) {
	var k APIKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if err := lockCounter(ctx, tx, tenant, key); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update api_keys set revoked_at = $3
			where tenant_id = $1 and revoked_at is null
			  and (api_key_id = $2 or expires_at is null or expires_at > $3)
			  and counter_id = (select counter_id from api_keys where tenant_id = $1 and api_key_id = $2)`, tenant, key, s.now())
		if err != nil {
			return err
		}
		if k, err = ReadAPIKey(ctx, tx, tenant, key); err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := tellKey(ctx, tx, tenant, message.APIKeyRevoked, k); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "api_key.revoked", id.APIKey.Format(key), map[string]string{"name": k.Name, "last4": k.Last4, "secrets": fmt.Sprint(tag.RowsAffected())})
	})
	return k, err
}

// WorkingBeside counts the keys of k's customer that work at an instant, without
// k: those that share its counter, and the rest. Of a k that is nothing but a
// customer, the rest is all.
func (s *Service) WorkingBeside(ctx context.Context, tenant uuid.UUID, k APIKey, at time.Time) (pair, rest int64, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select count(*) filter (where counter_id = $4), count(*) filter (where counter_id <> $4)
			from api_keys
			where tenant_id = $1 and customer_id = $2 and api_key_id <> $3 and revoked_at is null and (expires_at is null or expires_at > $5)`,
			tenant, k.Customer, k.ID, k.Counter, at).Scan(&pair, &rest)
	})
	return pair, rest, err
}

// touchedAtOnce is how many keys one transaction touches: whoever changes one of
// them waits for it.
const touchedAtOnce = 1000

// TouchAPIKeys notes when keys were last used, to the minute or so. Keys that
// somebody is changing at the moment are left out.
func (s *Service) TouchAPIKeys(ctx context.Context, tenant uuid.UUID, used map[uuid.UUID]time.Time) error {
	for keys := range slices.Chunk(slices.Collect(maps.Keys(used)), touchedAtOnce) {
		at := make([]time.Time, len(keys))
		for i, k := range keys {
			at[i] = used[k]
		}
		err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				with free as (
				    select k.api_key_id, u.at
				    from unnest($2::uuid[], $3::timestamptz[]) u (id, at)
				    join api_keys k on k.tenant_id = $1 and k.api_key_id = u.id
				    where k.last_used_at is null or k.last_used_at < u.at
				    for update of k skip locked)
				update api_keys k set last_used_at = free.at
				from free
				where k.tenant_id = $1 and k.api_key_id = free.api_key_id`, tenant, keys, at)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Status is active, revoked or expired, at an instant.
func (k APIKey) Status(now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && !k.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}
