package exports

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/postgres"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// Kind is what an export is of.
type Kind string

// The kinds.
const (
	Usage    Kind = "usage"    // a report
	Requests Kind = "requests" // the log, newest first
	Audit    Kind = "audit"    // who did what, in order
)

// Format is the form of a file.
type Format string

// The formats. JSON is one object a line (NDJSON).
const (
	CSV  Format = "csv"
	JSON Format = "json"
)

// Asked is what an export holds.
type Asked struct {
	Kind    Kind
	Format  Format
	From    time.Time
	To      time.Time
	Zone    string // of the times, and of a report's buckets
	Bucket  usage.Bucket
	GroupBy usage.GroupBy
	Filter  usage.Filter
	Sight   Sight
}

// Sight is what of the books somebody may see.
type Sight struct {
	Charges      bool // what customers pay
	Costs        bool // what providers charge
	Customers    bool
	Keys         bool
	ProviderKeys bool
	Audit        bool // only files of the audit hold any of it
}

// Within tells whether o sees everything that s does.
func (s Sight) Within(o Sight) bool {
	return (o.Charges || !s.Charges) && (o.Costs || !s.Costs) && (o.Customers || !s.Customers) && (o.Keys || !s.Keys) && (o.ProviderKeys || !s.ProviderKeys) &&
		(o.Audit || !s.Audit)
}

// State is how far an export is.
type State string

// The states.
const (
	Queued  State = "queued"
	Running State = "running"
	Ready   State = "ready"
	Failed  State = "failed"
)

// Export is a file, or the wish for one.
type Export struct {
	ID uuid.UUID
	Asked
	State     State
	Progress  float64 // 0 to 1
	Rows      int64
	Bytes     int64
	SHA256    []byte // of the whole file
	Reason    string // why it failed
	CreatedAt time.Time
	EndedAt   *time.Time
	ExpiresAt time.Time
}

const (
	keptFor  = 7 * 24 * time.Hour
	mostOpen = 10 // exports of a tenant that are not made yet
)

// Service is the tenants' exports. It is safe for concurrent use.
type Service struct {
	db      *postgres.DB
	tenants *tenants.Service
	reports *usage.Reports
	now     func() time.Time
}

// New makes it over a pool of the app role.
func New(db *postgres.DB, t *tenants.Service, r *usage.Reports, now func() time.Time) *Service {
	return &Service{db, t, r, now}
}

// Create asks for a file. Invalid names what is wrong with it; Conflict
// (too_many_exports) is that ten are waiting to be made, Forbidden
// (role_not_allowed) the audit for who does not see it.
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, a Asked) (e Export, err error) {
	now := s.now().UTC().Truncate(time.Microsecond)
	if a.To.IsZero() || a.To.After(now) {
		a.To = now
	}
	if wrong := a.check(); len(wrong) > 0 {
		return e, fault.InvalidFields(wrong...)
	}
	if a.Kind == Audit && !a.Sight.Audit {
		return e, fault.New(fault.Forbidden, "role_not_allowed", "The audit is for owners and admins.")
	}
	if a.Kind == Audit {
		a.Sight = Sight{Audit: true}
	} else {
		a.Sight.Audit = false
	}
	asked, err := json.Marshal(a)
	if err != nil {
		return e, err
	}
	e = Export{ID: id.New(), Asked: a, State: Queued, CreatedAt: now, ExpiresAt: now.Add(keptFor)}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1::text, 28))`, tenant); err != nil { // those asked for at once count too
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into exports (tenant_id, export_id, kind, format, asked, state, next_at, created_at, expires_at)
			select $1, $2, $3, $4, $5, 'queued', $6, $6, $7
			where (select count(*) from exports where tenant_id = $1 and state in ('queued', 'running')) < $8`,
			tenant, e.ID, string(a.Kind), string(a.Format), asked, now, e.ExpiresAt, mostOpen)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.Conflict, "too_many_exports", "Ten exports are waiting to be made. Ask again when one of them is done.")
		}
		return tenants.Audit(ctx, tx, tenant, "export.created", id.Export.Format(e.ID), map[string]string{"kind": string(a.Kind), "format": string(a.Format)})
	})
	return e, err
}

func (a Asked) check() (wrong []fault.Field) {
	if a.Kind != Usage && a.Kind != Requests && a.Kind != Audit {
		wrong = append(wrong, fault.Field{Pointer: "/kind", Code: "not_one_of", Message: "Must be usage, requests or audit."})
	}
	if a.Format != CSV && a.Format != JSON {
		wrong = append(wrong, fault.Field{Pointer: "/format", Code: "not_one_of", Message: "Must be csv or json."})
	}
	q := usage.Query{From: a.From, To: a.To, Bucket: a.Bucket, GroupBy: a.GroupBy}
	if a.Kind != Usage {
		q.Bucket, q.GroupBy = usage.Day, usage.ByNothing
	}
	for _, f := range q.Check() {
		f.Pointer = "/" + f.Pointer[1:]
		wrong = append(wrong, f)
	}
	return wrong
}

const columns = `export_id, asked, state, progress, written, bytes, sha256, reason, created_at, ended_at, expires_at`

func scan(row pgx.CollectableRow) (e Export, err error) {
	var asked []byte
	if err := row.Scan(&e.ID, &asked, &e.State, &e.Progress, &e.Rows, &e.Bytes, &e.SHA256, &e.Reason, &e.CreatedAt, &e.EndedAt, &e.ExpiresAt); err != nil {
		return e, err
	}
	return e, json.Unmarshal(asked, &e.Asked)
}

// List is a page of a tenant's exports, newest first.
func (s *Service) List(ctx context.Context, tenant, after uuid.UUID, limit int) (page tenants.Page[Export], err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+columns+`
			from exports
			where tenant_id = $1 and expires_at > $2 and ($3 = '00000000-0000-0000-0000-000000000000'::uuid or export_id < $3)
			order by export_id desc
			limit $4`, tenant, s.now(), after, limit+1)
		if err != nil {
			return err
		}
		items, err := pgx.CollectRows(rows, scan)
		page = tenants.PageOf(items, limit, func(e Export) uuid.UUID { return e.ID })
		return err
	})
	return page, err
}

// Get is one export. NotFound (export_not_found) for an id that is unknown,
// another tenant's, or of one whose week is over.
func (s *Service) Get(ctx context.Context, tenant, export uuid.UUID) (e Export, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+columns+` from exports where tenant_id = $1 and export_id = $2 and expires_at > $3`, tenant, export, s.now())
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return tenants.NotFound("export")
		}
		e = found[0]
		return nil
	})
	return e, err
}
