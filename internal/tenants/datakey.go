package tenants

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/keyring"
)

func (s *Service) addDataKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	w, err := s.ring.NewDataKey(tenant, id.New())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into data_keys (tenant_id, data_key_id, kek, wrapped)
		values ($1, $2, $3, $4)`, tenant, w.ID, w.KEK, w.Bytes)
	return err
}

// Seal encrypts a secret of one of the tenant's objects with the tenant's newest
// data key. Nothing seals to nil.
func (s *Service) Seal(ctx context.Context, tx pgx.Tx, tenant, object uuid.UUID, secret keyring.Secret) ([]byte, error) {
	if secret.IsZero() {
		return nil, nil
	}
	var w keyring.Wrapped
	err := tx.QueryRow(ctx, `
		select data_key_id, kek, wrapped from data_keys
		where tenant_id = $1 order by data_key_id desc limit 1`, tenant).Scan(&w.ID, &w.KEK, &w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	key, err := s.ring.Unwrap(tenant, w)
	if err != nil {
		return nil, err
	}
	return key.Seal(object, "secret", secret)
}

// Open decrypts what Seal made for the same object. The zero Secret opens from
// nil. What cannot be opened is Unavailable.
func (s *Service) Open(ctx context.Context, tx pgx.Tx, tenant, object uuid.UUID, sealed []byte) (keyring.Secret, error) {
	if sealed == nil {
		return keyring.Secret{}, nil
	}
	w := keyring.Wrapped{}
	dataKey, err := keyring.DataKeyOf(sealed)
	if err != nil {
		return keyring.Secret{}, err
	}
	err = tx.QueryRow(ctx, `
		select data_key_id, kek, wrapped from data_keys
		where tenant_id = $1 and data_key_id = $2`, tenant, dataKey).Scan(&w.ID, &w.KEK, &w.Bytes)
	if err != nil {
		return keyring.Secret{}, fmt.Errorf("data key: %w", err)
	}
	key, err := s.ring.Unwrap(tenant, w)
	if err != nil {
		return keyring.Secret{}, err
	}
	return key.Open(object, "secret", sealed)
}
