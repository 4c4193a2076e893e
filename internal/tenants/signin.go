package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
)

// SignInLink makes a one-time token for a member. tenant ("ten_…") may be empty
// where the person belongs to one tenant only.
func (s *Service) SignInLink(ctx context.Context, email, tenant string) (token string, expires time.Time, err error) {
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		var user uuid.UUID
		err := tx.QueryRow(ctx, `select user_id from users where email = $1`, strings.ToLower(strings.TrimSpace(email))).Scan(&user)
		if errors.Is(err, pgx.ErrNoRows) {
			return NotFound("user")
		}
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select tenant_id from lookup_memberships($1)`, user)
		if err != nil {
			return err
		}
		memberOf, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		into, err := chooseTenant(memberOf, tenant)
		if err != nil {
			return err
		}
		token, err = s.addSignInLink(ctx, tx, user, into)
		return err
	})
	return token, s.now().Add(SignInLifetime).UTC().Truncate(time.Second), err
}

func chooseTenant(memberOf []uuid.UUID, wanted string) (uuid.UUID, error) {
	if wanted == "" && len(memberOf) == 1 {
		return memberOf[0], nil
	}
	for _, t := range memberOf {
		if id.Tenant.Format(t) == wanted {
			return t, nil
		}
	}
	if wanted == "" && len(memberOf) > 1 {
		return uuid.Nil, fault.New(fault.Invalid, "tenant_needed", "This person belongs to several tenants; say which one.")
	}
	return uuid.Nil, NotFound("membership")
}
