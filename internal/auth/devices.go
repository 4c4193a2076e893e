package auth

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/tenants"
)

// Device is one session of a person, as they may recognise it.
type Device struct {
	Session   uuid.UUID
	Browser   string // what it called itself
	IP        string
	CreatedAt time.Time
	SeenAt    time.Time
}

// Devices are a person's sessions that still work, the last used first.
func (s *Sessions) Devices(ctx context.Context, user uuid.UUID) ([]Device, error) {
	var list []Device
	now := s.now()
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select session_id, user_agent, coalesce(host(ip), ''), created_at, seen_at
			from sessions
			where user_id = $1 and ended_at is null and expires_at > $2 and seen_at > $3
			order by seen_at desc, session_id`, user, now, now.Add(-SessionIdle))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Device])
		return err
	})
	return list, err
}

// EndOthers ends every session of a person but one, and returns how many.
func (s *Sessions) EndOthers(ctx context.Context, user, keep uuid.UUID) (ended int64, err error) {
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update sessions set ended_at = $3
			where user_id = $1 and session_id <> $2 and ended_at is null`, user, keep, s.now())
		ended = tag.RowsAffected()
		return err
	})
	return ended, err
}

// Rename changes what a person is called.
func (a *Accounts) Rename(ctx context.Context, user uuid.UUID, name string) error {
	if wrong := tenants.CheckName("/name", name); len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return a.tenants.RenameUser(ctx, user, name)
}
