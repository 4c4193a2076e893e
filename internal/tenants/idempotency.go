package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
)

// Claim is a request that may come again: the hash of its Idempotency-Key, and
// the hash of what it asks for.
type Claim struct {
	Credential   uuid.UUID
	Key, Request [32]byte
	RequestID    uuid.UUID // of this try
	At           time.Time
}

// Replay is the answer that a request got before.
type Replay struct {
	Status int
	Answer []byte
}

const (
	claimLife  = 48 * time.Hour
	claimPause = time.Minute // after which an answer that is not there never comes
)

type claimKey struct{}

// WithClaim returns a context whose first change, in the change's own
// transaction, takes the claim: of two requests at once one changes something.
func WithClaim(ctx context.Context, c Claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// Recall is the answer of the request that took the claim; found is false where
// none did. Another request under the same key is Refused idempotency_mismatch.
// One whose answer is not there yet is a Conflict idempotency_in_flight; where
// it was lost, idempotency_answer_lost: the change was made, once.
func (s *Service) Recall(ctx context.Context, tenant uuid.UUID, c Claim) (r Replay, found bool, err error) {
	return s.recall(ctx, tenant, c, uuid.Nil)
}

// RecallTwin is Recall for a try that was refused, and has taken no claim: found
// is another one, at the same time, which was carried out.
func (s *Service) RecallTwin(ctx context.Context, tenant uuid.UUID, c Claim) (r Replay, found bool, err error) {
	return s.recall(ctx, tenant, c, c.RequestID)
}

func (s *Service) recall(ctx context.Context, tenant uuid.UUID, c Claim, but uuid.UUID) (r Replay, found bool, err error) {
	var request []byte
	var status *int
	var at time.Time
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select request_hash, status, answer, created_at from idempotency_keys
			where tenant_id = $1 and credential_id = $2 and key_hash = $3 and created_at > $4 and request_id <> $5`,
			tenant, c.Credential, c.Key[:], s.now().Add(-claimLife), but).Scan(&request, &status, &r.Answer, &at)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r, false, nil
	case err != nil:
		return r, false, err
	case [32]byte(request) != c.Request:
		return r, true, fault.New(fault.Refused, "idempotency_mismatch", "This Idempotency-Key was used for another request. Use a new one for each.")
	case status == nil && s.now().Sub(at) > claimPause:
		return r, true, fault.New(fault.Conflict, "idempotency_answer_lost", "This request was carried out before, once, and its answer was lost. Read what it made from its list.")
	case status == nil:
		return r, true, inFlight()
	}
	r.Status = *status
	return r, true, nil
}

func inFlight() error {
	return fault.New(fault.Conflict, "idempotency_in_flight", "The same request is being carried out right now.").After(time.Second)
}

// Remember keeps the answer of a request that took its claim; of one that
// changed nothing there is nothing to keep. The answer holds no secret.
func (s *Service) Remember(ctx context.Context, tenant uuid.UUID, c Claim, r Replay) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update idempotency_keys set status = $5, answer = $6
			where tenant_id = $1 and credential_id = $2 and key_hash = $3 and request_id = $4`,
			tenant, c.Credential, c.Key[:], c.RequestID, r.Status, r.Answer)
		return err
	})
}

// takeClaim is part of every change. A try that took the claim already goes on.
func takeClaim(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	c, ok := ctx.Value(claimKey{}).(Claim)
	if !ok {
		return nil
	}
	now := c.At
	if _, err := tx.Exec(ctx, `
		delete from idempotency_keys where tenant_id = $1 and created_at <= $2`, tenant, now.Add(-claimLife)); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		insert into idempotency_keys (tenant_id, credential_id, key_hash, request_hash, request_id, created_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, credential_id, key_hash) do update set request_id = excluded.request_id
		where idempotency_keys.request_id = excluded.request_id`,
		tenant, c.Credential, c.Key[:], c.Request[:], c.RequestID, now)
	if err == nil && tag.RowsAffected() == 0 {
		return inFlight()
	}
	return err
}
