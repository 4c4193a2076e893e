package notify

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/keyring"
)

// claim leases a delivery; false is that another worker has it, or that there is
// nothing left to send.
func (d *Deliverer) claim(ctx context.Context, x dueDelivery) (p parcel, ok bool, err error) {
	now := d.instant()
	err = d.db.WithTenant(ctx, x.tenant, func(tx pgx.Tx) error {
		ok = false
		p = parcel{tenant: x.tenant, endpoint: x.endpoint, message: x.message, lease: id.New(), id: id.Message.Format(x.message)}
		var sealed, old []byte
		var oldUntil *time.Time
		err := tx.QueryRow(ctx, `
			with mine as (
			    select tenant_id, endpoint_id, message_id from webhook_deliveries
			    where tenant_id = $1 and endpoint_id = $2 and message_id = $3 and state = 'waiting' and next_at <= $4
			    for update skip locked
			)
			update webhook_deliveries d set next_at = $5, lease = $6
			from mine
			join webhook_endpoints e on e.tenant_id = mine.tenant_id and e.endpoint_id = mine.endpoint_id
			join webhook_messages m on m.tenant_id = mine.tenant_id and m.message_id = mine.message_id
			where d.tenant_id = $1 and d.endpoint_id = $2 and d.message_id = $3 and e.removed_at is null and e.disabled_at is null
			returning e.url, m.body, e.sealed_secret, e.old_sealed_secret, e.old_until`,
			x.tenant, x.endpoint, x.message, now, now.Add(leaseFor), p.lease).Scan(&p.url, &p.body, &sealed, &old, &oldUntil)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if oldUntil == nil || !oldUntil.After(now) {
			old = nil
		}
		ok = true
		p.secrets = d.secrets(ctx, tx, x.tenant, x.endpoint, sealed, old)
		return nil
	})
	return p, ok, err
}

// secrets opens those that sign, the present one first. None at all is what
// cannot be opened: the try fails, and is made again later.
func (d *Deliverer) secrets(ctx context.Context, tx pgx.Tx, tenant, endpoint uuid.UUID, all ...[]byte) (out []keyring.Secret) {
	for _, sealed := range all {
		secret, err := d.tenants.Open(ctx, tx, tenant, endpoint, sealed)
		if err != nil {
			d.log.Error("webhook secret cannot be opened", "endpoint", id.Endpoint.Format(endpoint), "error", err.Error())
			return nil
		}
		if !secret.IsZero() {
			out = append(out, secret)
		}
	}
	return out
}
