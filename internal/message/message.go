// Package message writes down what a tenant's webhook endpoints are told, in
// the transaction that did it: what is rolled back is never told, what is
// committed is told at least once. internal/notify delivers it.
package message

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// envelope is the body of a message, in the form that Standard Webhooks
// recommends (https://www.standardwebhooks.com).
type envelope struct {
	Type      Type      `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// Emit tells every endpoint of the tenant that wants messages of this type. The
// transaction must be the tenant's. data becomes the body's "data": ids in their
// public form, no secrets. A type that is not one of Types is an error. Where
// nobody wants it nothing is written. An endpoint that is off gets it held, for
// a replay.
func Emit(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t Type, data any) error {
	_, err := emit(ctx, tx, tenant, uuid.Nil, t, data)
	return err
}

// EmitTo tells one endpoint, whatever it wants, and returns the message's id;
// uuid.Nil where there is no such endpoint.
func EmitTo(ctx context.Context, tx pgx.Tx, tenant, endpoint uuid.UUID, t Type, data any) (uuid.UUID, error) {
	return emit(ctx, tx, tenant, endpoint, t, data)
}

func emit(ctx context.Context, tx pgx.Tx, tenant, only uuid.UUID, t Type, data any) (uuid.UUID, error) {
	if !t.Known() {
		return uuid.Nil, fmt.Errorf("message: type %q is not listed", t)
	}
	message := id.New()
	at := id.Time(message)
	body, err := json.Marshal(envelope{t, at, data})
	if err != nil {
		return uuid.Nil, fmt.Errorf("message %s: %w", t, err)
	}
	var endpoint *uuid.UUID // null: whichever wants it
	if only != uuid.Nil {
		endpoint = &only
	}
	tag, err := tx.Exec(ctx, `
		with told as (
		    select endpoint_id, disabled_at is not null as off
		    from webhook_endpoints
		    where tenant_id = $1 and removed_at is null
		      and case when $7::uuid is null then types = '{}' or $3 = any(types) or $4 = any(types) else endpoint_id = $7 end
		), kept as (
		    insert into webhook_messages (tenant_id, message_id, type, body, created_at)
		    select $1, $2, $3, $5, $6 where exists (select from told)
		)
		insert into webhook_deliveries (tenant_id, endpoint_id, message_id, state, next_at)
		select $1, endpoint_id, $2, case when off then 'held' else 'waiting' end, $6 from told`,
		tenant, message, string(t), t.Group()+".*", string(body), at, endpoint)
	if err != nil || tag.RowsAffected() == 0 {
		return uuid.Nil, err
	}
	return message, nil
}
