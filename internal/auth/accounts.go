package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/notify"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// How long links in mails work.
const (
	SignUpLifetime = 24 * time.Hour
	ResetLifetime  = 30 * time.Minute
)

// Accounts is how people get in: by signing up, with a password, or with a link
// in a mail when they forgot it. Whether an address is known shows in no answer
// and in no time: it shows in the mail that only its owner reads. It is safe
// for concurrent use.
type Accounts struct {
	db       *postgres.DB
	tenants  *tenants.Service
	sessions *Sessions
	hasher   *Hasher
	mailer   notify.Mailer // nil: this installation sends no mail
	url      string
	throttle *throttle
	log      *slog.Logger
	now      func() time.Time
}

// NewAccounts makes the service. url is what links in mails begin with.
func NewAccounts(db *postgres.DB, t *tenants.Service, s *Sessions, mailer notify.Mailer, url string, log *slog.Logger, now func() time.Time) *Accounts {
	return &Accounts{db: db, tenants: t, sessions: s, hasher: NewHasher(), mailer: mailer, url: strings.TrimRight(url, "/"), throttle: newThrottle(now), log: log, now: now}
}

// NewAccount is what a person signs up with.
type NewAccount struct {
	Name, Email, Password string
	Tenant                string // the organisation's name
	Zone, Currency        string // "": UTC, USD
	IP                    string
}

// CanMail tells whether this installation sends mail, without which nobody can
// sign up or set a new password alone.
func (a *Accounts) CanMail() bool { return a.mailer != nil }

func noMail() error {
	return fault.New(fault.Refused, "no_mail", "This installation sends no mail. Ask whoever runs it for a sign-in link.")
}

// SignUp checks what was entered, keeps it, and mails a link that makes the
// account. To an address that has one, the mail says so instead; the answer is
// the same.
func (a *Accounts) SignUp(ctx context.Context, n NewAccount) error {
	if a.mailer == nil {
		return noMail()
	}
	n = n.defaults()
	if wrong := n.check(); len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	who := subjects("sign-up", n.Email, n.IP)
	if err := a.throttle.check(who...); err != nil {
		return err
	}
	a.throttle.failed(who...) // so that nobody's address is flooded with mail
	hash, err := a.hasher.Hash(ctx, n.Password)
	if err != nil {
		return err
	}
	link, known := token(), false
	err = a.db.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select exists (select from users where email = $1)`, n.Email).Scan(&known); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			insert into sign_ups (link_hash, email, name, password_hash, tenant_name, zone, currency, created_at, expires_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			tenants.HashSecret(link), n.Email, n.Name, hash, n.Tenant, n.Zone, n.Currency, a.now(), a.now().Add(SignUpLifetime))
		return err
	})
	if err != nil {
		return err
	}
	return a.mailer.Send(ctx, signUpMail(n, a.url, link, known, a.now()))
}

func (n NewAccount) defaults() NewAccount {
	n.Email, n.Name, n.Tenant = strings.ToLower(strings.TrimSpace(n.Email)), strings.TrimSpace(n.Name), strings.TrimSpace(n.Tenant)
	if n.Zone == "" {
		n.Zone = "UTC"
	}
	if n.Currency == "" {
		n.Currency = "USD"
	}
	return n
}

func (n NewAccount) check() []fault.Field {
	wrong := tenants.CheckName("/name", n.Name)
	wrong = append(wrong, tenants.CheckEmail("/email", n.Email)...)
	wrong = append(wrong, CheckPassword("/password", n.Password, n.Email)...)
	wrong = append(wrong, tenants.CheckName("/tenant", n.Tenant)...)
	return append(wrong, tenants.CheckZone("/zone", n.Zone)...)
}

// Confirm uses up a sign-up's link: it makes the tenant and its owner and opens
// a session. A person who has an account already gets the new tenant added to
// it, and keeps their password. A used, old or unknown link is Unauthenticated
// token_invalid; of two at once one wins.
func (a *Accounts) Confirm(ctx context.Context, link, userAgent, ip string) (Issued, error) {
	tenant := id.New()
	var issued Issued
	err := a.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		var n tenants.NewTenant
		var hash string
		err := tx.QueryRow(ctx, `
			update sign_ups set used_at = $2
			where link_hash = $1 and used_at is null and expires_at > $2
			returning email, name, password_hash, tenant_name, zone, currency`, tenants.HashSecret(link), a.now()).
			Scan(&n.OwnerEmail, &n.OwnerName, &hash, &n.Name, &n.Zone, &n.Currency)
		if errors.Is(err, pgx.ErrNoRows) {
			return badLink()
		}
		if err != nil {
			return err
		}
		owner, err := a.tenants.OpenTx(ctx, tx, tenant, n)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			insert into passwords (user_id, hash, changed_at) values ($1, $2, $3)
			on conflict (user_id) do nothing`, owner.ID, hash, a.now())
		if err != nil {
			return err
		}
		issued, err = a.sessions.openTx(ctx, tx, owner.ID, tenant, userAgent, ip)
		return err
	})
	return issued, err
}

func badLink() error {
	return fault.New(fault.Unauthenticated, "token_invalid", "This link was used already, or has expired. Ask for a new one.")
}

// SignIn opens a session for the right password, in the tenant that the person
// joined first. Whatever is wrong is Unauthenticated sign_in_failed; too many
// failures of an account or network are Limited for a while.
func (a *Accounts) SignIn(ctx context.Context, email, password, userAgent, ip string) (Issued, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if strings.Contains(email, "\x00") {
		email = "" // no text to Postgres, and nobody's address
	}
	who := subjects("sign-in", email, ip)
	if err := a.throttle.check(who...); err != nil {
		return Issued{}, err
	}
	var user uuid.UUID
	var hash string
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			select u.user_id, p.hash from users u join passwords p on p.user_id = u.user_id
			where u.email = $1`, email).Scan(&user, &hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return Issued{}, err
	}
	good, err := a.hasher.Matches(ctx, hash, password)
	if err != nil {
		return Issued{}, err
	}
	if !good {
		a.throttle.failed(who...)
		return Issued{}, fault.New(fault.Unauthenticated, "sign_in_failed", "E-mail address and password do not go together.")
	}
	return a.enter(ctx, user, userAgent, ip)
}

// enter opens a session in the person's first tenant.
func (a *Accounts) enter(ctx context.Context, user uuid.UUID, userAgent, ip string) (Issued, error) {
	var issued Issued
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		var tenant uuid.UUID
		err := tx.QueryRow(ctx, `select tenant_id from lookup_memberships($1) limit 1`, user).Scan(&tenant)
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.Forbidden, "no_membership", "You are a member of no tenant any more.")
		}
		if err != nil {
			return err
		}
		issued, err = a.sessions.openTx(ctx, tx, user, tenant, userAgent, ip)
		return err
	})
	return issued, err
}
