package notify

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
)

const mailsAtOnce = 32

// OweMail writes a mail down in the transaction that is its reason. It is sent
// by a Deliverer, by the schedule of messages. Its Link is sealed until then, and
// forgotten afterwards.
func (s *Service) OweMail(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, m Mail) error {
	mail := id.New()
	sealed, err := s.sealLink(ctx, tx, tenant, mail, m.Link)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into mails (tenant_id, mail_id, recipient, subject, body, from_name, reply_to, sealed_link, state, next_at, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', $9, $9)`, tenant, mail, m.To, m.Subject, m.Text, m.FromName, m.ReplyTo, sealed, s.instant())
	return err
}

type dueMail struct{ tenant, mail uuid.UUID }

// sendMails begins to send the mail that is due, one after the other: a mail
// server is one for all.
func (d *Deliverer) sendMails(ctx context.Context) error {
	if d.mail == nil || !d.postOffice.TryLock() {
		return nil
	}
	due, err := lookup(ctx, d.db, `select tenant_id, mail_id from lookup_due_mails($1, $2)`,
		func(row pgx.CollectableRow) (x dueMail, err error) {
			err = row.Scan(&x.tenant, &x.mail)
			return x, err
		}, d.now(), mailsAtOnce)
	if err != nil || len(due) == 0 {
		d.postOffice.Unlock()
		return err
	}
	d.wait.Go(func() {
		defer d.postOffice.Unlock()
		for _, x := range due {
			if ctx.Err() != nil {
				return
			}
			if err := d.sendMail(context.WithoutCancel(ctx), x); err != nil {
				d.log.Warn("a mail was not sent", "error", err.Error())
			}
		}
	})
	return nil
}

// sendMail sends one, if nobody else does.
func (d *Deliverer) sendMail(ctx context.Context, x dueMail) error {
	m, ok, err := d.claimMail(ctx, x)
	if err != nil || !ok {
		return err
	}
	failed := m.broken
	if failed == nil {
		failed = d.mail.Send(ctx, m.Mail)
	}
	if !d.beforeRecord() {
		return nil
	}
	now := d.instant()
	state, next := "sent", now
	if failed != nil {
		wait, more := nextTry(m.tries+1, d.random())
		state, next = "waiting", now.Add(wait)
		if !more || fault.Is(failed, fault.Invalid) { // an address that no mail can be sent to
			state = "dead"
		}
	}
	err = d.db.WithTenant(ctx, x.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update mails
			set state = $4, tries = tries + 1, next_at = $5, lease = null, sent_at = case when $4 = 'sent' then $6::timestamptz end,
			    sealed_link = case when $4 = 'waiting' then sealed_link end
			where tenant_id = $1 and mail_id = $2 and lease = $3`, x.tenant, x.mail, m.lease, state, next, now)
		return err
	})
	return errors.Join(failed, err)
}

// claimedMail is a mail that this process has to itself for a while.
type claimedMail struct {
	Mail
	lease  uuid.UUID
	tries  int
	broken error // its link does not open
}

func (d *Deliverer) claimMail(ctx context.Context, x dueMail) (m claimedMail, ok bool, err error) {
	now := d.instant()
	err = d.db.WithTenant(ctx, x.tenant, func(tx pgx.Tx) error {
		m, ok = claimedMail{lease: id.New()}, true
		var sealed []byte
		err := tx.QueryRow(ctx, `
			update mails set next_at = $4, lease = $5
			where tenant_id = $1 and mail_id = (
			    select mail_id from mails
			    where tenant_id = $1 and mail_id = $2 and state = 'waiting' and next_at <= $3
			    for update skip locked)
			returning recipient, subject, body, from_name, reply_to, sealed_link, created_at, tries`, x.tenant, x.mail, now, now.Add(leaseFor), m.lease).
			Scan(&m.To, &m.Subject, &m.Text, &m.FromName, &m.ReplyTo, &sealed, &m.At, &m.tries)
		if errors.Is(err, pgx.ErrNoRows) {
			ok = false
			return nil
		}
		if err == nil {
			m.Text, m.broken = d.fillLink(ctx, tx, x, m.Text, sealed)
		}
		return err
	})
	return m, ok, err
}

const (
	keptFor    = 30 * 24 * time.Hour // messages with their tries, and mail
	pruneEvery = time.Hour
	pruneMost  = 10_000 // rows in one transaction
)

// Prune deletes messages and mail that are older than 30 days.
func (s *Service) Prune(ctx context.Context) error {
	before := id.At(s.now().Add(-keptFor))
	list, err := lookup(ctx, s.db, `select tenant_id from lookup_told_before($1)`, pgx.RowTo[uuid.UUID], before)
	for _, tenant := range list {
		err = errors.Join(err, s.pruneTenant(ctx, tenant, before))
	}
	return err
}

func (s *Service) pruneTenant(ctx context.Context, tenant, before uuid.UUID) error {
	for _, sql := range []string{
		`delete from webhook_messages where tenant_id = $1 and message_id in (
		     select message_id from webhook_messages where tenant_id = $1 and message_id < $2 limit $3)`,
		`delete from mails where tenant_id = $1 and mail_id in (
		     select mail_id from mails where tenant_id = $1 and mail_id < $2 limit $3)`,
	} {
		for more := true; more; {
			err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, sql, tenant, before, pruneMost)
				more = tag.RowsAffected() == pruneMost
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
