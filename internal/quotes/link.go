package quotes

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/keyring"
	"weir/internal/tenants"
)

// link is the quote's address, made when it is first asked for.
func (s *Service) link(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID) (string, error) {
	var sealed []byte
	if err := tx.QueryRow(ctx, `
		select link_sealed from quotes where tenant_id = $1 and quote_id = $2`, tenant, quote).Scan(&sealed); err != nil {
		return "", err
	}
	if sealed != nil {
		secret, err := s.tenants.Open(ctx, tx, tenant, quote, sealed)
		return s.address(secret.Reveal()), err
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(random[:])
	sealed, err := s.tenants.Seal(ctx, tx, tenant, quote, keyring.NewSecret(token))
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `
		update quotes set link_hash = $3, link_sealed = $4
		where tenant_id = $1 and quote_id = $2`, tenant, quote, tenants.HashSecret(token), sealed)
	return s.address(token), err
}

func (s *Service) address(token string) string { return s.url + "/q/" + token }

// Link is the address of a quote that was sent; "" of one that never was. Whoever
// has it can accept.
func (s *Service) Link(ctx context.Context, tenant, quote uuid.UUID) (string, error) {
	var link string
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		q, err := s.read(ctx, tx, tenant, quote, 0)
		if err != nil || q.SentAt == nil {
			return err
		}
		link, err = s.link(ctx, tx, tenant, quote)
		return err
	})
	return link, err
}
