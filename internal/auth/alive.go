package auth

import (
	"context"

	"github.com/jackc/pgx/v5"

	"weir/internal/tenants"
)

// Alive tells whether a session still stands, without counting as a use of it:
// a page that is left open keeps no session from ending.
func (s *Sessions) Alive(ctx context.Context, sessionToken string) (alive bool, err error) {
	now := s.now()
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select exists (
				select from sessions s
				cross join lateral lookup_memberships(s.user_id) m
				where s.session_hash = $1 and s.ended_at is null and s.expires_at > $2 and s.seen_at > $3 and m.tenant_id = s.tenant_id
			)`, tenants.HashSecret(sessionToken), now, now.Add(-SessionIdle)).Scan(&alive)
	})
	return alive, err
}
