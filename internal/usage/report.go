package usage

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/postgres"
)

// Reports reads the books. Dashboard, API, exports and invoices read them here,
// so that no two can disagree.
type Reports struct {
	db  *postgres.DB
	now func() time.Time
}

// NewReports makes them over a pool of the app role.
func NewReports(db *postgres.DB, now func() time.Time) *Reports { return &Reports{db, now} }

// GroupBy is what the rows of a bucket are told apart by.
type GroupBy string

// The groups. A key is its counter: a rotated pair is one. A model is the one
// that was asked for. ByTag makes one more of each tag.
const (
	ByNothing     GroupBy = ""
	ByCustomer    GroupBy = "customer"
	ByKey         GroupBy = "api_key"
	ByModel       GroupBy = "model"
	ByProviderKey GroupBy = "provider_key"
	ByOutcome     GroupBy = "outcome"
	ByEndUser     GroupBy = "end_user"
)

const tagPrefix = "tag:"

// ByTag groups by the value of a tag.
func ByTag(name string) GroupBy { return GroupBy(tagPrefix + name) }

// Tag is the name of the tag that is grouped by.
func (g GroupBy) Tag() (name string, ok bool) { return strings.CutPrefix(string(g), tagPrefix) }

// TestCalls says what becomes of calls that are never billed: those of the
// practice provider and of test keys.
type TestCalls int

// Test calls are left out unless asked for.
const (
	WithoutTests TestCalls = iota
	WithTests
	OnlyTests
)

// Filter keeps the calls that match everything that is set.
type Filter struct {
	Customer, Counter, ProviderKey uuid.UUID
	Model                          string  // asked for
	Outcome                        Outcome // "refused" stands for every refusal
	Tests                          TestCalls
	EndUser                        string
	Tag                            Tag
}

// Tag is one label of a call; without a name it is none.
type Tag struct{ Name, Value string }

// Query asks for sums. From and To are widened to whole buckets of Zone.
type Query struct {
	From, To time.Time
	Bucket   Bucket
	GroupBy  GroupBy
	Filter   Filter
	Zone     *time.Location // nil: UTC
	Days     limits.Zones   // of the tenant's civil days; where the buckets are these, their sums are read; zero: they are not known
}

// Report is the answer: for every bucket, in order, one row of each group that
// occurs anywhere in the range, zero-filled.
type Report struct {
	From, To time.Time
	Rows     []Row
	Totals   Sums
	AsOf     time.Time // every call that ended before is counted
	// CompleteUntil is before AsOf: every call that was admitted before is
	// counted, and none of them is still open.
	CompleteUntil time.Time
}

// Row is one group in the bucket that begins at Start and ends where the next
// one begins.
type Row struct {
	Start, End time.Time
	Group      Group
	Sums
}

// Group is an id (of a customer, counter or provider key) or a name (of a model,
// outcome, end user or a tag's value); neither where the calls have none, or
// nothing is grouped. Rest is all end users, or values, beyond the largest.
type Group struct {
	ID   uuid.UUID
	Name string
	Rest bool
}

// Sums add up calls. Requests are those that were admitted, Refused those that
// were not, Errors the requests that ended as a client or provider error or at
// the provider's limit.
type Sums struct {
	Requests, Refused, Errors int64
	Tokens                    limits.Tokens
	Units                     int64
	Charges                   []Money // what customers pay, by currency
	Costs                     []Money // what providers charge; calls without a known price have none
	Unpriced                  int64   // requests that may have cost something and have no known price
	Latency                   Latency // how long calls took
}

// Money is an exact amount.
type Money struct {
	Currency string
	Amount   money.Pico
}

// Check returns what is wrong with a query, by parameter.
func (q Query) Check() []fault.Field { return q.check() }

// Report sums up a tenant's usage. Invalid names the query parameter that is
// wrong; a report of too many rows is one, and one whose buckets are no longer
// kept. Days are kept for ever: where nothing shorter is, those of the tenant
// stand for those of another zone.
func (r *Reports) Report(ctx context.Context, tenant uuid.UUID, q Query) (Report, error) {
	if wrong := q.check(); wrong != nil {
		return Report{}, fault.InvalidFields(wrong...)
	}
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	starts, end := buckets(q.From, q.To, q.Bucket, q.Zone)
	rep := Report{From: starts[0], To: end}
	var cells []cell
	err := r.db.Snapshot(ctx, tenant, func(tx pgx.Tx) (err error) {
		if rep.AsOf, rep.CompleteUntil, err = complete(ctx, tx, r.now()); err != nil {
			return err
		}
		if q.labelled() {
			cells, err = readLabelled(ctx, tx, tenant, q, starts, end)
			return err
		}
		cells, err = readSums(ctx, tx, tenant, q, starts, end, r.now())
		return err
	})
	if err != nil {
		return Report{}, err
	}
	return rep, rep.fill(q, starts, cells)
}

func (q Query) check() []fault.Field {
	wrong := checkRange(q.From, q.To, q.Bucket)
	if tag, isTag := q.GroupBy.Tag(); isTag && !tagName.MatchString(tag) {
		wrong = append(wrong, fault.Field{Pointer: "?group_by", Code: "bad_label", Message: "A tag's name is 1 to 64 of A–Z a–z 0–9 _ . -, as in group_by=tag:team."})
	} else if _, ok := groupColumns[q.GroupBy]; !ok && !isTag && q.GroupBy != ByEndUser {
		wrong = append(wrong, fault.Field{Pointer: "?group_by", Code: "not_one_of", Message: "group_by must be one of customer, api_key, model, provider_key, outcome, end_user, or tag: and a tag's name."})
	}
	return wrong
}

// Over tells whether an instance ended and the books have everything of it. One
// that never registered is not over, nor is one that was only said to be gone:
// what it left is counted if it is found.
func (r *Reports) Over(ctx context.Context, instance uuid.UUID) (over bool, err error) {
	err = r.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select coalesce((select stopped_at is not null from instances where instance_id = $1), false)`, instance).Scan(&over)
	})
	return over, err
}
