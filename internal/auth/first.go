package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// First makes the first tenant of an installation that has none, for who holds
// the token that its process printed. It is safe for concurrent use.
type First struct {
	accounts *Accounts
	hash     [sha256.Size]byte
	over     atomic.Bool // somebody is here: nothing is offered any more
}

// NewFirst makes the offer, and the token that it takes.
func NewFirst(a *Accounts) (*First, string) {
	t := token()
	return &First{accounts: a, hash: sha256.Sum256([]byte(t))}, t
}

// Open tells whether the installation is empty. Once it is not, it is never
// asked again.
func (f *First) Open(ctx context.Context) (open bool, err error) {
	if f.over.Load() {
		return false, nil
	}
	err = f.accounts.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		open, err = empty(ctx, tx)
		return err
	})
	if err == nil && !open {
		f.over.Store(true)
	}
	return open, err
}

// empty tells whether nobody is here. A tenant has an owner from its first
// instant, and nobody is anybody without a tenant.
func empty(ctx context.Context, tx pgx.Tx) (yes bool, err error) {
	err = tx.QueryRow(ctx, `select not exists (select from users)`).Scan(&yes)
	return yes, err
}

// lockFirst is the advisory lock under which the first tenant is made.
const lockFirst = 0x77656972

// Make makes the tenant and its owner with a password, and opens a session. A
// wrong token is Unauthenticated first_token_wrong, and Limited after some, which
// keeps nobody out who holds the right one; an installation that is not empty is
// a Conflict already_begun, to the later of two at once, too.
func (f *First) Make(ctx context.Context, typed string, n NewAccount, userAgent string) (Issued, error) {
	if open, err := f.Open(ctx); err != nil || !open {
		return Issued{}, begun(err)
	}
	got := sha256.Sum256([]byte(typed))
	if subtle.ConstantTimeCompare(got[:], f.hash[:]) != 1 {
		return Issued{}, f.wrongToken(n.IP)
	}
	if n = n.defaults(); len(n.check()) > 0 {
		return Issued{}, fault.InvalidFields(n.check()...)
	}
	hash, err := f.accounts.hasher.Hash(ctx, n.Password)
	if err != nil {
		return Issued{}, err
	}
	issued, err := f.make(ctx, n, hash, userAgent)
	if err == nil {
		f.over.Store(true)
	}
	return issued, err
}

func (f *First) wrongToken(ip string) error {
	t, who := f.accounts.throttle, subjects("first visit", "", ip)
	if err := t.check(who...); err != nil {
		return err
	}
	t.failed(who...)
	return fault.New(fault.Unauthenticated, "first_token_wrong", "This is not the token that this installation printed when it started. Each start prints a new one.")
}

func (f *First) make(ctx context.Context, n NewAccount, hash, userAgent string) (issued Issued, err error) {
	a, tenant := f.accounts, id.New()
	err = a.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, lockFirst); err != nil {
			return err
		}
		if open, err := empty(ctx, tx); err != nil || !open {
			return begun(err)
		}
		owner, err := a.tenants.OpenTx(ctx, tx, tenant, tenants.NewTenant{Name: n.Tenant, OwnerEmail: n.Email, OwnerName: n.Name, Zone: n.Zone, Currency: n.Currency})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into passwords (user_id, hash, changed_at) values ($1, $2, $3)`, owner.ID, hash, a.now()); err != nil {
			return err
		}
		issued, err = a.sessions.openTx(ctx, tx, owner.ID, tenant, userAgent, n.IP)
		return err
	})
	return issued, err
}

func begun(err error) error {
	if err != nil {
		return err
	}
	return fault.New(fault.Conflict, "already_begun", "This installation has its first organisation already. Sign in, or ask whoever made it to let you in.")
}
