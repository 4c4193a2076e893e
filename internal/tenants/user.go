package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// User is a person; the same person in every tenant.
type User struct {
	ID    uuid.UUID
	Email string
	Name  string
}

// RenameUser changes what a person is called, in every tenant.
func (s *Service) RenameUser(ctx context.Context, user uuid.UUID, name string) error {
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update users set name = $2 where user_id = $1`, user, name)
		return err
	})
}
