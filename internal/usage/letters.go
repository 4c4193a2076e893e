package usage

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	Payload    []byte // as it came; only Read has it
	Size       int    // of it, in bytes
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
			l.Size, l.Payload = len(l.Payload), nil
			list = append(list, l)
			return nil
		})
		return err
	})
	return list, err
}

// Letter is one dead letter, without what came; NotFound where there is none of
// the id.
func (p *Pipeline) Letter(ctx context.Context, letter uuid.UUID) (Letter, error) {
	l, err := p.letter(ctx, letter)
	l.Size, l.Payload = len(l.Payload), nil
	return l, err
}

func (p *Pipeline) letter(ctx context.Context, letter uuid.UUID) (l Letter, err error) {
	err = p.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select `+letterColumns+` from dead_letters where dead_letter_id = $1`, letter).Scan(l.fields()...)
	})
	l.Size = len(l.Payload)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, noLetter()
	}
	return l, err
}

// Read is a dead letter with what came, which may be of a tenant: that somebody
// reads it, and why, is first written into the audit of every tenant that it names
// (theirs) and of the operator's (own). Invalid without a reason of at most 200
// characters; NotFound where there is none of the id.
func (p *Pipeline) Read(ctx context.Context, operator, letter uuid.UUID, reason string, own, theirs Audit) (Letter, error) {
	reason = strings.TrimSpace(reason)
	if n := utf8.RuneCountInString(reason); n == 0 || n > maxReason || strings.ContainsFunc(reason, unicode.IsControl) {
		return Letter{}, fault.InvalidFields(fault.Field{Pointer: "/reason", Code: "required", Message: "Say why you read it, in at most 200 characters. The organisation that it is of reads the same."})
	}
	l, err := p.letter(ctx, letter)
	if err != nil {
		return l, err
	}
	noted := map[string]string{"why": reason, "letter": l.Reason}
	for _, tenant := range l.tenants() {
		if tenant == operator {
			continue
		}
		err := p.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
			var there bool
			err := tx.QueryRow(ctx, `select exists (select from tenants where tenant_id = $1)`, tenant).Scan(&there)
			if err != nil || !there {
				return err
			}
			return theirs(ctx, tx, tenant, "dead_letter.read", letter.String(), noted)
		})
		if err != nil {
			return Letter{}, err
		}
	}
	return l, p.db.WithTenant(ctx, operator, func(tx pgx.Tx) error {
		return own(ctx, tx, operator, "dead_letter.read", letter.String(), noted)
	})
}

const maxReason = 200

// tenants are those that what came says it is of, whoever signed it.
func (l Letter) tenants() (list []uuid.UUID) {
	for line := range bytes.Lines(l.Payload) {
		var of struct {
			Tenant uuid.UUID `json:"tenant"`
		}
		if decodeOwn(line, &of) == nil && of.Tenant != uuid.Nil && !slices.Contains(list, of.Tenant) {
			list = append(list, of.Tenant)
		}
	}
	return list
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
