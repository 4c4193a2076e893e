package notify

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/message"
	"weir/internal/tenants"
)

// Why an endpoint is off.
const (
	OffByPerson = "person"
	OffGone     = "gone"    // it answered 410
	OffFailing  = "failing" // it took nothing for days
)

// MaxEndpoints is how many a tenant may have.
const MaxEndpoints = 20

// Endpoint is an address of a tenant that messages are posted to. Its secrets
// stay sealed.
type Endpoint struct {
	ID           uuid.UUID
	URL          string
	Description  string
	Types        []string // message types or group.*; none: every type
	Last4        string   // of the secret that signs
	OldLast4     string   // of the one before, which signs too until OldUntil
	OldUntil     *time.Time
	CreatedAt    time.Time
	FailingSince *time.Time // the first failed try after the last message that was taken
	DisabledAt   *time.Time
	DisabledWhy  string
}

// Issued is an endpoint with its new signing secret, which is shown this once.
type Issued struct {
	Endpoint
	Secret string
}

// NewEndpoint is what an endpoint starts from.
type NewEndpoint struct {
	URL         string
	Description string
	Types       []string
}

func (s *Service) checkEndpoint(address, description string, types []string) (string, error) {
	wrong := checkTypes(types)
	if description != "" {
		wrong = append(wrong, tenants.CheckName("/description", description)...)
	}
	if len(wrong) > 0 {
		return "", fault.InvalidFields(wrong...)
	}
	u, err := s.guard.CheckHook(address)
	if err != nil {
		f := fault.Of(err)
		return "", f.With(fault.Field{Pointer: "/url", Code: f.Code, Message: f.Message})
	}
	return u.String(), nil
}

func checkTypes(types []string) (wrong []fault.Field) {
	for i, t := range types {
		switch {
		case !message.Wanted(t):
			wrong = append(wrong, fault.Field{Pointer: "/types/" + strconv.Itoa(i), Code: "not_one_of", Message: "This is neither a message type nor a group of them such as customer.*."})
		case slices.Index(types, t) != i:
			wrong = append(wrong, fault.Field{Pointer: "/types/" + strconv.Itoa(i), Code: "duplicate", Message: "This type stands twice."})
		}
	}
	return wrong
}

// AddEndpoint makes an endpoint and returns its signing secret, once. An address
// that may not be called is Refused url_not_allowed; one endpoint too many is a
// Conflict too_many_endpoints.
func (s *Service) AddEndpoint(ctx context.Context, tenant uuid.UUID, n NewEndpoint) (Issued, error) {
	address, err := s.checkEndpoint(n.URL, n.Description, n.Types)
	if err != nil {
		return Issued{}, err
	}
	secret := newSecret()
	out := Issued{Secret: secret}
	out.Endpoint = Endpoint{ID: id.New(), URL: address, Description: n.Description, Types: append([]string{}, n.Types...), Last4: keyring.NewSecret(secret).Last4(), CreatedAt: s.instant()}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := room(ctx, tx, tenant); err != nil {
			return err
		}
		sealed, err := s.tenants.Seal(ctx, tx, tenant, out.ID, keyring.NewSecret(secret))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			insert into webhook_endpoints (tenant_id, endpoint_id, url, description, types, sealed_secret, last4, created_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8)`,
			tenant, out.ID, out.URL, out.Description, out.Types, sealed, out.Last4, out.CreatedAt); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_endpoint.created", id.Endpoint.Format(out.ID), endpointNote{out.URL, out.Types})
	})
	return out, err
}

// endpointNote is what the audit says of one.
type endpointNote struct {
	URL   string   `json:"url"`
	Types []string `json:"types"`
}

// room holds the tenant to its number of endpoints, also when two are added at
// once.
func room(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1::text, 24))", tenant); err != nil {
		return err
	}
	var n int
	err := tx.QueryRow(ctx, `select count(*) from webhook_endpoints where tenant_id = $1 and removed_at is null`, tenant).Scan(&n)
	if err == nil && n >= MaxEndpoints {
		return fault.Newf(fault.Conflict, "too_many_endpoints", "A tenant may have %d webhook endpoints. Remove one first.", MaxEndpoints)
	}
	return err
}

const endpointColumns = `endpoint_id, url, description, types, last4, old_last4, old_until, created_at, failing_since, disabled_at, disabled_why`

func scanEndpoint(row pgx.CollectableRow) (e Endpoint, err error) {
	err = row.Scan(&e.ID, &e.URL, &e.Description, &e.Types, &e.Last4, &e.OldLast4, &e.OldUntil, &e.CreatedAt, &e.FailingSince, &e.DisabledAt, &e.DisabledWhy)
	return e, err
}

// Endpoint reads one endpoint.
func (s *Service) Endpoint(ctx context.Context, tenant, endpoint uuid.UUID) (Endpoint, error) {
	var e Endpoint
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		e, err = readEndpoint(ctx, tx, tenant, endpoint, "")
		return err
	})
	return e, err
}

func readEndpoint(ctx context.Context, tx pgx.Tx, tenant, endpoint uuid.UUID, lock string) (Endpoint, error) {
	rows, err := tx.Query(ctx, `
		select `+endpointColumns+` from webhook_endpoints
		where tenant_id = $1 and endpoint_id = $2 and removed_at is null `+lock, tenant, endpoint)
	if err != nil {
		return Endpoint{}, err
	}
	e, err := pgx.CollectExactlyOneRow(rows, scanEndpoint)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, tenants.NotFound("webhook endpoint")
	}
	return e, err
}

// Endpoints lists endpoints, newest first, after an id.
func (s *Service) Endpoints(ctx context.Context, tenant, after uuid.UUID, limit int) (tenants.Page[Endpoint], error) {
	var list []Endpoint
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+endpointColumns+` from webhook_endpoints
			where tenant_id = $1 and removed_at is null and endpoint_id < $2
			order by endpoint_id desc limit $3`, tenant, tenants.After(after), limit+1)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanEndpoint)
		return err
	})
	return tenants.PageOf(list, limit, func(e Endpoint) uuid.UUID { return e.ID }), err
}
