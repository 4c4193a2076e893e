package catalogue

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/postgres"
)

// Audit writes an entry of the transaction's change, as tenants.Audit does.
type Audit func(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action, object string, difference any) error

// Service keeps what tenants bring to the catalogue. It is safe for concurrent
// use.
type Service struct {
	db    *postgres.DB
	audit Audit
}

// New makes the service.
func New(db *postgres.DB, audit Audit) *Service { return &Service{db: db, audit: audit} }

// Book is what a tenant's calls are judged by now.
func (s *Service) Book(ctx context.Context, tenant uuid.UUID) (*Book, error) {
	return BookOf(ctx, s.db, tenant)
}

// CostOf is what a tenant's providers charge, as it is known now.
func (s *Service) CostOf(ctx context.Context, tenant uuid.UUID) (Costs, error) {
	b, err := s.Book(ctx, tenant)
	if err != nil {
		return Costs{}, err
	}
	return b.Costs, nil
}

// BookOf reads a tenant's book.
func BookOf(ctx context.Context, db *postgres.DB, tenant uuid.UUID) (*Book, error) {
	var own ownRows
	err := db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if own.models, err = readModels(ctx, tx, tenant); err != nil {
			return err
		}
		if own.published, err = readLimits(ctx, tx, tenant); err != nil {
			return err
		}
		own.prices, err = readPrices(ctx, tx, tenant)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(own.models)+len(own.published)+len(own.prices) == 0 {
		return BuiltIn(), nil
	}
	return newBook(own), nil
}

// Kind is one of the sheets of the catalogue.
type Kind string

// The sheets.
const (
	KindModels Kind = "models"
	KindLimits Kind = "limits"
	KindPrices Kind = "prices"
)

// Import is a file of rows for a sheet.
type Import struct {
	CSV     string
	Replace bool // the tenant's own rows that the file does not have are removed
	DryRun  bool // nothing is stored
}

// Diff is what an import changes, or would.
type Diff struct {
	Added, Changed, Removed, Unchanged int
	Rows                               []Difference // the first MostDifferences
}

// Difference is one row that is not as it was: Before of a new one is empty, and
// After of a removed one.
type Difference struct {
	Line          int // of the file; 0: it is not in there
	Before, After []string
}

// MostDifferences is how many rows a diff shows.
const MostDifferences = 200

// Export is a sheet as a CSV file: everything that counts for the tenant, or its
// own rows alone. Importing it changes nothing. rows is how many there are.
func (s *Service) Export(ctx context.Context, tenant uuid.UUID, k Kind, own bool) (file string, rows int, err error) {
	b, err := s.Book(ctx, tenant)
	if err != nil {
		return "", 0, err
	}
	switch k {
	case KindModels:
		return exported(modelSheet, b.models, own)
	case KindLimits:
		return exported(limitSheet, b.published, own)
	case KindPrices:
		return exported(priceSheet, b.prices, own)
	}
	return "", 0, noSheet(k)
}

func exported[R any](s sheet[R], o overlay[R], own bool) (string, int, error) {
	rows := o.all()
	if own {
		rows = slices.Clone(o.own)
	}
	slices.SortStableFunc(rows, func(a, b R) int { return slices.Compare(s.write(a), s.write(b)) })
	return s.file(rows), len(rows), nil
}

// Import takes a file into a sheet of the tenant, all of it or nothing. Rows that
// say what is known anyway are not stored. What is wrong with a file is Invalid,
// with a field for each line.
func (s *Service) Import(ctx context.Context, tenant uuid.UUID, k Kind, file Import) (Diff, error) {
	switch k {
	case KindModels:
		return imported(ctx, s, tenant, modelTable, file, builtModels())
	case KindLimits:
		return imported(ctx, s, tenant, limitTable, file, builtLimits())
	case KindPrices:
		return imported(ctx, s, tenant, priceTable, file, builtPrices())
	}
	return Diff{}, noSheet(k)
}

func noSheet(k Kind) error {
	return fault.Newf(fault.NotFound, "not_found", "The catalogue has no sheet %q.", string(k))
}

func imported[R any](ctx context.Context, s *Service, tenant uuid.UUID, t table[R], file Import, built []R) (Diff, error) {
	lines, err := t.sheet.parse(file.CSV)
	if err != nil {
		return Diff{}, err
	}
	var diff Diff
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1::text, 19))", tenant); err != nil {
			return err
		}
		before, err := t.read(ctx, tx, tenant)
		if err != nil {
			return err
		}
		var after []R
		after, diff = t.sheet.merge(before, built, lines, file.Replace)
		if len(after) > mostRows {
			return fault.Newf(fault.TooLarge, "too_many_rows", "A tenant has at most %d rows of its own in a sheet.", mostRows)
		}
		if file.DryRun || diff.Added+diff.Changed+diff.Removed == 0 {
			return nil
		}
		if err := t.store(ctx, tx, tenant, after); err != nil {
			return err
		}
		return s.audit(ctx, tx, tenant, "catalogue.imported", t.sheet.kind,
			map[string]int{"added": diff.Added, "changed": diff.Changed, "removed": diff.Removed})
	})
	return diff, err
}

// merge is the tenant's own rows after a file, and what that changes of what
// counts.
func (s sheet[R]) merge(own, built []R, file []line[R], replace bool) (after []R, d Diff) {
	mine, base := byKey(s, own), byKey(s, built)
	there := map[string]bool{}
	for _, l := range file {
		k := s.key(l.row)
		there[k] = true
		old, counted := mine[k]
		if !counted {
			old, counted = base[k]
		}
		_, isMine := mine[k]
		switch {
		case counted && slices.Equal(s.write(old), s.write(l.row)):
			d.Unchanged++
			if isMine {
				after = append(after, old)
			}
			continue
		case counted:
			d.Changed++
			d.note(l.at, s.write(old), s.write(l.row))
		default:
			d.Added++
			d.note(l.at, nil, s.write(l.row))
		}
		if b, isBase := base[k]; !isBase || !slices.Equal(s.write(b), s.write(l.row)) {
			after = append(after, l.row)
		}
	}
	for _, r := range own {
		switch {
		case there[s.key(r)]:
		case replace:
			d.Removed++
			d.note(0, s.write(r), nil)
		default:
			after = append(after, r)
		}
	}
	return after, d
}

func (d *Diff) note(line int, before, after []string) {
	if len(d.Rows) < MostDifferences {
		d.Rows = append(d.Rows, Difference{line, before, after})
	}
}

func byKey[R any](s sheet[R], rows []R) map[string]R {
	out := make(map[string]R, len(rows))
	for _, r := range rows {
		out[s.key(r)] = r
	}
	return out
}

// table is a sheet as Postgres keeps it.
type table[R any] struct {
	sheet  sheet[R]
	read   func(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]R, error)
	remove string
	insert string
	args   func(R) []any
}

// store puts rows in the place of all that the tenant had.
func (t table[R]) store(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, rows []R) error {
	if _, err := tx.Exec(ctx, t.remove, tenant); err != nil {
		return err
	}
	var batch pgx.Batch
	for _, r := range rows {
		batch.Queue(t.insert, append([]any{tenant}, t.args(r)...)...)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("store catalogue %s: %w", t.sheet.kind, err)
	}
	return nil
}
