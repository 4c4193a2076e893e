package tenants

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
)

// Tenant is the organisation that owns everything else.
type Tenant struct {
	ID          uuid.UUID
	Name        string
	Zone        string // IANA, in which its days are counted as it was read
	Zones       limits.Zones
	Currency    string // ISO 4217
	Operator    bool
	CreatedAt   time.Time
	SuspendedAt *time.Time
	UsageDays   int            // how long calls are kept; 0: as long as the installation keeps any
	Limits      []limits.Limit // at tenant scope

	CeilingPercent int64 // how much of what its keys carry it sells at most without a reason; 0: none chosen
}

// NewTenant is what a tenant starts from.
type NewTenant struct {
	Name       string
	OwnerEmail string
	OwnerName  string
	Zone       string // "" is UTC
	Currency   string // "" is USD
	Operator   bool   // makes it tenant zero
}

// Created is a new tenant with the two secrets that are shown once.
type Created struct {
	Tenant        Tenant
	Owner         User
	ManagementKey IssuedKey
	SignInToken   string
}

// SignInLifetime is how long a sign-in link works.
const SignInLifetime = 30 * time.Minute

// Create makes a tenant, its owner (a known e-mail address keeps its user), a
// management key with every scope, and a one-time sign-in token.
func (s *Service) Create(ctx context.Context, n NewTenant) (Created, error) {
	n.OwnerEmail = strings.ToLower(strings.TrimSpace(n.OwnerEmail))
	if n.Zone == "" {
		n.Zone = "UTC"
	}
	if n.Currency == "" {
		n.Currency = "USD"
	}
	if err := n.check(); err != nil {
		return Created{}, err
	}
	c := Created{Tenant: Tenant{ID: id.New(), Name: n.Name, Zone: n.Zone, Zones: limits.Zones{Zone: n.Zone}, Currency: n.Currency, Operator: n.Operator, CreatedAt: s.now()}}
	err := s.db.WithTenant(ctx, c.Tenant.ID, func(tx pgx.Tx) (err error) {
		if c.Owner, err = s.insertTenant(ctx, tx, c.Tenant, n); err != nil {
			return err
		}
		c.ManagementKey, err = s.insertKey(ctx, tx, c.Tenant.ID, NewAPIKey{Kind: Management, Name: "First management key", Scopes: []string{"*"}})
		if err != nil {
			return err
		}
		c.SignInToken, err = s.addSignInLink(ctx, tx, c.Owner.ID, c.Tenant.ID)
		return err
	})
	return c, conflict(err)
}

// OpenTx makes a tenant and its owner in the caller's transaction, which is the
// new tenant's: nothing else of it exists yet.
func (s *Service) OpenTx(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n NewTenant) (User, error) {
	if err := n.check(); err != nil {
		return User{}, err
	}
	u, err := s.insertTenant(ctx, tx, Tenant{ID: tenant, Name: n.Name, Zone: n.Zone, Currency: n.Currency, Operator: n.Operator, CreatedAt: s.now()}, n)
	return u, conflict(err)
}

func (n NewTenant) check() error {
	wrong := CheckName("/name", n.Name)
	wrong = append(wrong, CheckEmail("/owner_email", n.OwnerEmail)...)
	if n.OwnerName != "" {
		wrong = append(wrong, CheckName("/owner_name", n.OwnerName)...)
	}
	wrong = append(wrong, CheckZone("/zone", n.Zone)...)
	if !money.ValidCurrency(n.Currency) {
		wrong = append(wrong, fault.Field{Pointer: "/currency", Code: "bad_currency", Message: "This is not a currency code such as USD."})
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// CheckZone refuses what is not an IANA time zone, and the folders beside them
// that some systems have: another replica may not.
func CheckZone(pointer, zone string) []fault.Field {
	_, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" || strings.HasPrefix(zone, "posix/") || strings.HasPrefix(zone, "right/") {
		return []fault.Field{{Pointer: pointer, Code: "bad_zone", Message: "This is not an IANA time zone such as Europe/Berlin."}}
	}
	return nil
}

func (s *Service) insertTenant(ctx context.Context, tx pgx.Tx, t Tenant, n NewTenant) (User, error) {
	_, err := tx.Exec(ctx, `
		insert into tenants (tenant_id, name, zone, currency, is_operator, created_at)
		values ($1, $2, $3, $4, $5, $6)`, t.ID, t.Name, t.Zone, t.Currency, t.Operator, t.CreatedAt)
	if err != nil {
		return User{}, err
	}
	owner, err := upsertUser(ctx, tx, n.OwnerEmail, n.OwnerName)
	if err != nil {
		return User{}, err
	}
	_, err = tx.Exec(ctx, `
		insert into members (tenant_id, member_id, user_id, role)
		values ($1, $2, $3, 'owner')`, t.ID, id.New(), owner.ID)
	if err != nil {
		return User{}, err
	}
	if err := s.addDataKey(ctx, tx, t.ID); err != nil {
		return User{}, err
	}
	return owner, Audit(ctx, tx, t.ID, "tenant.created", id.Tenant.Format(t.ID), map[string]string{"name": t.Name, "zone": t.Zone, "owner": n.OwnerEmail})
}

func upsertUser(ctx context.Context, tx pgx.Tx, email, name string) (User, error) {
	u := User{ID: id.New(), Email: email, Name: name}
	err := tx.QueryRow(ctx, `
		insert into users (user_id, email, name) values ($1, $2, $3)
		on conflict (email) do update set email = excluded.email
		returning user_id, name`, u.ID, u.Email, u.Name).Scan(&u.ID, &u.Name)
	return u, err
}

func (s *Service) addSignInLink(ctx context.Context, tx pgx.Tx, user, tenant uuid.UUID) (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(raw)
	_, err := tx.Exec(ctx, `
		insert into sign_in_links (link_hash, user_id, tenant_id, expires_at)
		values ($1, $2, $3, $4)`, HashSecret(token), user, tenant, s.now().Add(SignInLifetime))
	return token, err
}

// Get reads a tenant with its limits.
func (s *Service) Get(ctx context.Context, tenant uuid.UUID) (Tenant, error) {
	var t Tenant
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		t, err = ReadTenant(ctx, tx, tenant, s.now())
		return err
	})
	return t, err
}

// ReadTenant is Get for a caller who owns the transaction.
func ReadTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, now time.Time) (Tenant, error) {
	t := Tenant{ID: tenant}
	err := tx.QueryRow(ctx, `
		select name, zone, past_zones, currency, is_operator, created_at, suspended_at, coalesce(usage_days, 0), coalesce(ceiling_percent, 0)
		from tenants where tenant_id = $1`, tenant).
		Scan(&t.Name, &t.Zones.Zone, &t.Zones.Past, &t.Currency, &t.Operator, &t.CreatedAt, &t.SuspendedAt, &t.UsageDays, &t.CeilingPercent)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, NotFound("tenant")
	}
	if err != nil {
		return t, err
	}
	_, _, in := t.Zones.Day(now)
	t.Zone = in.String()
	byOwner, err := LimitsOf(ctx, tx, tenant, OwnedByTenant, []uuid.UUID{tenant})
	t.Limits = Placed(byOwner[tenant], limits.Scope{Kind: limits.ScopeTenant, ID: tenant, Name: t.Name})
	return t, err
}

// NotFound is the one answer to an id that does not exist, is malformed, or is
// another tenant's.
func NotFound(what string) error {
	return fault.New(fault.NotFound, "not_found", "There is no such "+what+".")
}

// Missing is NotFound for what a member names.
func Missing(pointer, what string) error {
	return fault.New(fault.NotFound, "not_found", "There is no such "+what+".").
		With(fault.Field{Pointer: pointer, Code: "not_found", Message: "There is no such " + what + "."})
}
