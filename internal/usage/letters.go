package usage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
)

// Letter is something that could not be counted.
type Letter struct {
	ID         uuid.UUID
	Reason     string
	Subject    string
	Instance   *uuid.UUID
	Shard      *int
	Number     *int64 // of the event; nil: not known
	Payload    []byte // as it came
	CreatedAt  time.Time
	AskedAt    *time.Time // somebody asked to count it
	Refused    *string    // why the last try did not
	ReplayedAt *time.Time // it is counted
}

// Replayable tells whether a letter is an event that might be counted yet: one
// that a message with a good signature brought.
func (l Letter) Replayable() bool {
	return l.ReplayedAt == nil && l.AskedAt == nil && l.Number != nil && l.Instance != nil && l.Shard != nil && l.Reason != badRun
}

const letterColumns = `dead_letter_id, reason, subject, instance_id, shard, number, payload, created_at, asked_at, refused, replayed_at`

func (l *Letter) fields() []any {
	return []any{&l.ID, &l.Reason, &l.Subject, &l.Instance, &l.Shard, &l.Number, &l.Payload, &l.CreatedAt, &l.AskedAt, &l.Refused, &l.ReplayedAt}
}

// Letters are dead letters, the newest first, at most 100: those that stand, or
// counted ones too.
func (p *Pipeline) Letters(ctx context.Context, all bool) (list []Letter, err error) {
	err = p.db.Tx(ctx, func(tx pgx.Tx) error {
		list = nil
		rows, err := tx.Query(ctx, `
			select `+letterColumns+`
			from dead_letters where $1 or replayed_at is null
			order by created_at desc, dead_letter_id desc limit 100`, all)
		if err != nil {
			return err
		}
		var l Letter
		_, err = pgx.ForEachRow(rows, l.fields(), func() error {
			list = append(list, l)
			return nil
		})
		return err
	})
	return list, err
}

// Letter is one dead letter; NotFound where there is none of the id.
func (p *Pipeline) Letter(ctx context.Context, letter uuid.UUID) (l Letter, err error) {
	err = p.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select `+letterColumns+` from dead_letters where dead_letter_id = $1`, letter).Scan(l.fields()...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return l, noLetter()
	}
	return l, err
}

func noLetter() error {
	return fault.New(fault.NotFound, "letter_not_found", "There is no such dead letter.")
}

// AskReplay has a worker try to count a dead letter, once. It is written into the
// audit of the operator's tenant. NotFound where there is none of the id; a Conflict
// (letter_not_replayable) where it is no event, was counted, or is being tried.
func (p *Pipeline) AskReplay(ctx context.Context, operator, letter uuid.UUID, audit Audit) error {
	return p.db.WithTenant(ctx, operator, func(tx pgx.Tx) error {
		var l Letter
		err := tx.QueryRow(ctx, `select `+letterColumns+` from dead_letters where dead_letter_id = $1 for update`, letter).Scan(l.fields()...)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noLetter()
		case err != nil:
			return err
		case !l.Replayable():
			return fault.New(fault.Conflict, "letter_not_replayable", "This dead letter is counted already, is being tried, or is no event that could be counted.")
		}
		if _, err := tx.Exec(ctx, `update dead_letters set asked_at = now(), refused = null where dead_letter_id = $1`, letter); err != nil {
			return err
		}
		return audit(ctx, tx, operator, "dead_letter.replayed", letter.String(), map[string]string{"reason": l.Reason})
	})
}
