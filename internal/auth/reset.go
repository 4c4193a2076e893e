package auth

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/notify"
	"weir/internal/tenants"
)

// ForgotPassword mails a link that sets a new password. To an address without
// an account it mails nothing; the answer is the same.
func (a *Accounts) ForgotPassword(ctx context.Context, email, ip string) error {
	if a.mailer == nil {
		return noMail()
	}
	email = strings.ToLower(strings.TrimSpace(email))
	if wrong := tenants.CheckEmail("/email", email); len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	who := subjects("reset", email, ip)
	if err := a.throttle.check(who...); err != nil {
		return err
	}
	a.throttle.failed(who...)
	link, known := token(), false
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into reset_links (link_hash, user_id, created_at, expires_at)
			select $1, user_id, $3, $4 from users where email = $2`,
			tenants.HashSecret(link), email, a.now(), a.now().Add(ResetLifetime))
		known = tag.RowsAffected() > 0
		return err
	})
	if err != nil || !known {
		return err
	}
	go a.send(context.WithoutCancel(ctx), resetMail(email, a.url, link, a.now())) // not in the answer's time
	return nil
}

// send mails what no answer waits for.
func (a *Accounts) send(ctx context.Context, m notify.Mail) {
	if err := a.mailer.Send(ctx, m); err != nil {
		a.log.WarnContext(ctx, "mail not sent", "subject", m.Subject, "error", err)
	}
}

// ResetPassword uses up a reset link: it sets the password, ends every session
// and other reset link of the person, tells them by mail, and opens a new
// session. A used, old or unknown link is Unauthenticated token_invalid.
func (a *Accounts) ResetPassword(ctx context.Context, link, password, userAgent, ip string) (Issued, error) {
	email, err := a.linkOwner(ctx, link)
	if err != nil {
		return Issued{}, err
	}
	if wrong := CheckPassword("/password", password, email); len(wrong) > 0 {
		return Issued{}, fault.InvalidFields(wrong...)
	}
	hash, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return Issued{}, err
	}
	var user uuid.UUID
	err = a.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			update reset_links set used_at = $2
			where link_hash = $1 and used_at is null and expires_at > $2
			returning user_id`, tenants.HashSecret(link), a.now()).Scan(&user)
		if errors.Is(err, pgx.ErrNoRows) {
			return badLink()
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update reset_links set used_at = $2 where user_id = $1 and used_at is null`, user, a.now()); err != nil {
			return err
		}
		return a.setPassword(ctx, tx, user, hash, uuid.Nil)
	})
	if err != nil {
		return Issued{}, err
	}
	if a.mailer != nil {
		go a.send(context.WithoutCancel(ctx), changedMail(email, a.url, a.now()))
	}
	return a.enter(ctx, user, userAgent, ip)
}

// linkOwner is the address behind a reset link that still works.
func (a *Accounts) linkOwner(ctx context.Context, link string) (email string, err error) {
	err = a.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			select u.email from reset_links l join users u on u.user_id = l.user_id
			where l.link_hash = $1 and l.used_at is null and l.expires_at > $2`, tenants.HashSecret(link), a.now()).Scan(&email)
		if errors.Is(err, pgx.ErrNoRows) {
			return badLink()
		}
		return err
	})
	return email, err
}

// setPassword stores a hash and ends the person's sessions but one.
func (a *Accounts) setPassword(ctx context.Context, tx pgx.Tx, user uuid.UUID, hash string, keep uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		insert into passwords (user_id, hash, changed_at) values ($1, $2, $3)
		on conflict (user_id) do update set hash = excluded.hash, changed_at = excluded.changed_at`, user, hash, a.now())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update sessions set ended_at = $2
		where user_id = $1 and ended_at is null and session_id <> $3`, user, a.now(), keep)
	return err
}

// ChangePassword sets a new password for a signed-in person who knows the old
// one, and ends their other sessions. A person who has none yet (they came by a
// sign-in link) sets the first one. A wrong old one is Invalid at /current.
func (a *Accounts) ChangePassword(ctx context.Context, p Person, current, password string) error {
	if wrong := CheckPassword("/password", password, p.User.Email); len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	who := subjects("sign-in", p.User.Email, "")
	if err := a.throttle.check(who...); err != nil {
		return err
	}
	has, hash, err := a.passwordOf(ctx, p.User.ID)
	if err != nil {
		return err
	}
	if has {
		good, err := a.hasher.Matches(ctx, hash, current)
		if err != nil {
			return err
		}
		if !good {
			a.throttle.failed(who...)
			return fault.InvalidFields(fault.Field{Pointer: "/current", Code: "wrong_password", Message: "This is not your present password."})
		}
	}
	next, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return a.db.Tx(ctx, func(tx pgx.Tx) error { return a.setPassword(ctx, tx, p.User.ID, next, p.Session) })
}

// HasPassword tells whether a person can sign in with one.
func (a *Accounts) HasPassword(ctx context.Context, user uuid.UUID) (bool, error) {
	has, _, err := a.passwordOf(ctx, user)
	return has, err
}

func (a *Accounts) passwordOf(ctx context.Context, user uuid.UUID) (has bool, hash string, err error) {
	err = a.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select hash from passwords where user_id = $1`, user).Scan(&hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		has = err == nil
		return err
	})
	return has, hash, err
}
