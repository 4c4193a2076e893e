package stack

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/internal/devstack/localpg"
	"weir/internal/devstack/locate"
)

// Superuser connects to the stack's database past row-level security. The
// caller closes the connection.
func (s *Stack) Superuser(ctx context.Context) (*pgx.Conn, error) {
	if s.remote != nil {
		return pgx.Connect(ctx, s.remote.SuperURL)
	}
	return s.connect(ctx, localpg.Superuser)
}

func (s *Stack) connect(ctx context.Context, role string) (*pgx.Conn, error) {
	d, err := locate.Describe(s.Dir)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(d.OwnerURL)
	if err != nil {
		return nil, err
	}
	u.User = url.User(role)
	return pgx.Connect(ctx, u.String())
}

// Rows runs a query past row-level security. T is a struct with a field for
// each column, in order, or the type of the one column.
func Rows[T any](t testing.TB, s *Stack, query string, args ...any) []T {
	t.Helper()
	list, err := rows[T](t.Context(), s, query, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return list
}

func rows[T any](ctx context.Context, s *Stack, query string, args ...any) ([]T, error) {
	db, err := s.Superuser(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	got, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	if fields := got.FieldDescriptions(); len(fields) == 1 {
		return pgx.CollectRows(got, pgx.RowTo[T])
	}
	return pgx.CollectRows(got, pgx.RowToStructByPos[T])
}

// Value is Rows for one row of one column.
func Value[T any](t testing.TB, s *Stack, query string, args ...any) T {
	t.Helper()
	list := Rows[T](t, s, query, args...)
	if len(list) != 1 {
		t.Fatalf("%d rows, want 1\n%s", len(list), query)
	}
	return list[0]
}
