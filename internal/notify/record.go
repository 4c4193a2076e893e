package notify

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/tenants"
)

// record writes down what became of a try: the attempt always, the state of the
// delivery if the lease still holds, and what it says of the endpoint.
func (d *Deliverer) record(ctx context.Context, p parcel, o outcome) error {
	return d.db.WithTenant(ctx, p.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into webhook_attempts (tenant_id, endpoint_id, message_id, attempt_id, at, status, ms, error)
			select tenant_id, endpoint_id, message_id, $4, $5, $6, $7, $8 from webhook_deliveries
			where tenant_id = $1 and endpoint_id = $2 and message_id = $3`,
			p.tenant, p.endpoint, p.message, id.New(), o.at, o.status, o.took.Milliseconds(), o.err)
		if err != nil {
			return err
		}
		if err := d.move(ctx, tx, p, o); err != nil {
			return err
		}
		return d.judge(ctx, tx, p, o)
	})
}

// move says where the delivery goes from here.
func (d *Deliverer) move(ctx context.Context, tx pgx.Tx, p parcel, o outcome) error {
	var tries int
	err := tx.QueryRow(ctx, `
		select coalesce(max(tries), -1) from webhook_deliveries
		where tenant_id = $1 and endpoint_id = $2 and message_id = $3 and lease = $4 and state = 'waiting'`,
		p.tenant, p.endpoint, p.message, p.lease).Scan(&tries)
	if err != nil || tries < 0 { // replayed, held, or taken over meanwhile
		return err
	}
	state, next := "taken", o.at
	if !o.taken() {
		wait, more := nextTry(tries+1, d.random())
		state, next = "waiting", o.at.Add(wait)
		if !more {
			state = "dead"
		}
	}
	_, err = tx.Exec(ctx, `
		update webhook_deliveries
		set state = $5, tries = tries + 1, next_at = $6, lease = null, last_at = $7, last_status = $8, last_ms = $9, last_error = $10
		where tenant_id = $1 and endpoint_id = $2 and message_id = $3 and lease = $4 and state = 'waiting'`,
		p.tenant, p.endpoint, p.message, p.lease, state, next, o.at, o.status, o.took.Milliseconds(), o.err)
	return err
}

// judge notes since when an endpoint fails, and switches off one that is gone or
// has taken nothing for days.
func (d *Deliverer) judge(ctx context.Context, tx pgx.Tx, p parcel, o outcome) error {
	if o.taken() {
		_, err := tx.Exec(ctx, `
			update webhook_endpoints set failing_since = null
			where tenant_id = $1 and endpoint_id = $2 and failing_since is not null`, p.tenant, p.endpoint)
		return err
	}
	if _, err := tx.Exec(ctx, `
		update webhook_endpoints set failing_since = $3
		where tenant_id = $1 and endpoint_id = $2 and failing_since is null`, p.tenant, p.endpoint, o.at); err != nil {
		return err
	}
	why := OffFailing
	if o.status == http.StatusGone {
		why = OffGone
	}
	var address string
	var since time.Time
	rows, err := tx.Query(ctx, `
		update webhook_endpoints set disabled_at = $3, disabled_why = $4
		where tenant_id = $1 and endpoint_id = $2 and removed_at is null and disabled_at is null and ($4 = 'gone' or failing_since <= $5)
		returning url, failing_since`, p.tenant, p.endpoint, o.at, why, o.at.Add(-failingFor))
	if err != nil {
		return err
	}
	tag, err := pgx.ForEachRow(rows, []any{&address, &since}, func() error { return nil })
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return d.switchedOff(ctx, tx, p.tenant, p.endpoint, address, why, since)
}

// switchedOff holds what waits, and tells the people who can do something.
func (d *Deliverer) switchedOff(ctx context.Context, tx pgx.Tx, tenant, endpoint uuid.UUID, address, why string, since time.Time) error {
	if err := hold(ctx, tx, tenant, endpoint); err != nil {
		return err
	}
	if err := tenants.Audit(ctx, tx, tenant, "webhook_endpoint.disabled", id.Endpoint.Format(endpoint), map[string]string{"url": address, "why": why}); err != nil {
		return err
	}
	said := "it answered 410, which means that it is gone for good"
	if why == OffFailing {
		said = "it has taken no message since " + since.UTC().Format("2 January 2006 15:04 UTC")
	}
	people, err := managers(ctx, tx, tenant)
	if err != nil {
		return err
	}
	for _, to := range people {
		err := d.OweMail(ctx, tx, tenant, Mail{
			To: to, Subject: "A webhook endpoint was switched off",
			Text: fmt.Sprintf("The webhook endpoint\n\n  %s\n\nwas switched off: %s.\n\nWhat happens meanwhile is held. Switch the endpoint on again on the page Webhooks, and replay from there.\n", address, said),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// managers are the addresses of those who may change webhooks.
func managers(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]string, error) {
	rows, err := tx.Query(ctx, `
		select u.email from members m join users u on u.user_id = m.user_id
		where m.tenant_id = $1 and m.removed_at is null and m.role in ('owner', 'admin')
		order by u.email`, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
