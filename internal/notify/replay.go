package notify

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// Resend sends a message again, now, with the same id and bytes: to one endpoint,
// also one that never had it, or, with uuid.Nil, to every one that it went to and
// that is on. Its tries begin anew. That nobody is left to send it to is a
// Conflict endpoint_off.
func (s *Service) Resend(ctx context.Context, tenant, msg, endpoint uuid.UUID) (Message, error) {
	var m Message
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err = readMessage(ctx, tx, tenant, msg); err != nil {
			return err
		}
		if endpoint != uuid.Nil {
			if _, err := readEndpoint(ctx, tx, tenant, endpoint, ""); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `
			insert into webhook_deliveries as d (tenant_id, endpoint_id, message_id, state, next_at)
			select $1, e.endpoint_id, $2, 'waiting', $4
			from webhook_endpoints e
			where e.tenant_id = $1 and e.removed_at is null and e.disabled_at is null
			  and (e.endpoint_id = $3 or $3::uuid is null and exists (
			      select from webhook_deliveries x where x.tenant_id = $1 and x.message_id = $2 and x.endpoint_id = e.endpoint_id))
			on conflict (tenant_id, endpoint_id, message_id) do update set state = 'waiting', tries = 0, next_at = $4, lease = null`,
			tenant, msg, optional(endpoint), s.instant())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return endpointOff()
		}
		if m, err = readMessage(ctx, tx, tenant, msg); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_message.resent", id.Message.Format(msg), map[string]int64{"deliveries": tag.RowsAffected()})
	})
	return m, err
}

// Range is which messages of an endpoint are replayed: those made in [From, To)
// that it has not taken, or with All every one of them.
type Range struct {
	From, To time.Time
	All      bool
}

// Replay sends an endpoint again what it missed in a range, and says how many
// messages that are. What waits is sent now. An endpoint that is off is a
// Conflict endpoint_off.
func (s *Service) Replay(ctx context.Context, tenant, endpoint uuid.UUID, r Range) (n int64, err error) {
	if !r.To.IsZero() && !r.From.Before(r.To) {
		return 0, fault.InvalidFields(fault.Field{Pointer: "/to", Code: "out_of_range", Message: "The range must end after it begins."})
	}
	now := s.instant()
	if r.To.IsZero() {
		r.To = now.Add(time.Second) // ids are made by the clock of whoever emits
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		e, err := readEndpoint(ctx, tx, tenant, endpoint, "")
		if err != nil {
			return err
		}
		if e.DisabledAt != nil {
			return endpointOff()
		}
		tag, err := tx.Exec(ctx, `
			update webhook_deliveries d set state = 'waiting', tries = 0, next_at = $5, lease = null
			from webhook_messages m
			where d.tenant_id = $1 and d.endpoint_id = $2 and m.tenant_id = $1 and m.message_id = d.message_id
			  and m.created_at >= $3 and m.created_at < $4 and (d.state <> 'taken' or $6)`,
			tenant, endpoint, r.From, r.To, now, r.All)
		if n = tag.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_endpoint.replayed", id.Endpoint.Format(endpoint), replayNote{r.From, r.To, r.All, n})
	})
	return n, err
}

// replayNote is what the audit says of one.
type replayNote struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	All      bool      `json:"all"`
	Messages int64     `json:"messages"`
}
