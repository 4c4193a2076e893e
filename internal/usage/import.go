package usage

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// KindImported is the kind of a call that somebody else's gateway metered.
const KindImported = "imported"

// Imported is what became of an event that was imported.
type Imported string

// The results. A duplicate is an event that is stored already, as it is sent
// again; a conflict is one that is stored with other figures, which stay. One
// whose day is gone came before, or did not: nobody knows any more, and it is not
// counted.
const (
	ImportStored    Imported = "stored"
	ImportDuplicate Imported = "duplicate"
	ImportConflict  Imported = "conflict"
	ImportTooOld    Imported = "too_old"
)

// Importer takes in events of calls that were metered elsewhere. They go the way
// of every other event, through the spool; no limit is charged. It is safe for
// concurrent use.
type Importer struct {
	spool   *Spool
	reports *Reports
	lately  [Shards]lately
}

// NewImporter makes one.
func NewImporter(s *Spool, r *Reports) *Importer { return &Importer{spool: s, reports: r} }

// ImportID is the id of an event that a tenant imports under an id of its own:
// the same for the same id and instant, however often it is sent.
func ImportID(tenant uuid.UUID, own string, startedAt time.Time) uuid.UUID {
	return derived(tenant, "event", own, startedAt)
}

// ImportRequestID is the request id of such an event.
func ImportRequestID(tenant uuid.UUID, own string, startedAt time.Time) uuid.UUID {
	return derived(tenant, "request", own, startedAt)
}

// derived is a UUIDv7 of an instant whose other bits follow from what it is of.
func derived(tenant uuid.UUID, what, own string, at time.Time) uuid.UUID {
	at = stored(at)
	u, ms := uuid.NewSHA1(tenant, []byte("import "+what+" "+strconv.FormatInt(at.UnixMicro(), 10)+" "+own)), at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
	return u
}

// Import writes events down, in order, and says what became of each. An event
// that came before, in this batch or ever, is counted once. After an error
// (Unavailable: the books or the spool are out) some may be written: send all of
// them again. An event that the books could not take is a defect of the caller.
//
// What has been written and is not yet in the books is known to this process
// alone: sent again through another one it may be called stored twice, and is
// counted once all the same.
func (i *Importer) Import(ctx context.Context, tenant uuid.UUID, events []Event) ([]Imported, error) {
	seen := &i.lately[ShardOf(tenant)]
	seen.mu.Lock()
	defer seen.mu.Unlock()
	known, gone, err := i.reports.byID(ctx, tenant, events)
	if err != nil {
		return nil, err
	}
	out := make([]Imported, len(events))
	for n, e := range events {
		e.Kind = KindImported
		e.clean()
		was, found := known[e.ID]
		if !found {
			was, found = seen.events[e.ID]
		}
		switch {
		case !partition(e.ID).After(gone):
			out[n] = ImportTooOld
		case found && was.sameCall(e):
			out[n] = ImportDuplicate
		case found:
			out[n] = ImportConflict
		default:
			if err := i.spool.Finish(&e); err != nil {
				return nil, err
			}
			seen.keep(e)
			out[n] = ImportStored
		}
	}
	return out, nil
}

// sameCall tells whether two events say the same of a call. What the customer pays
// follows from it; what the provider charged is stated.
func (e Event) sameCall(o Event) bool {
	return e.Customer == o.Customer && e.Key == o.Key && e.ModelAsked == o.ModelAsked && e.StartedAt.Equal(o.StartedAt) && e.EndedAt.Equal(o.EndedAt) &&
		e.Outcome == o.Outcome && e.Tokens == o.Tokens && e.Units == o.Units && e.EndUser == o.EndUser && maps.Equal(e.Tags, o.Tags) &&
		e.CostCurrency == o.CostCurrency && (e.Cost == nil || o.Cost == nil || e.Cost.Sub(*o.Cost).IsZero())
}

// mostLately is how many events of a shard are remembered while they are on
// their way into the books.
const mostLately = 20_000

// lately is what was written down last.
type lately struct {
	mu     sync.Mutex
	events map[uuid.UUID]Event
	order  []uuid.UUID // a ring, once it is full
	next   int
}

func (l *lately) keep(e Event) {
	if l.events == nil {
		l.events = map[uuid.UUID]Event{}
	}
	if len(l.order) < mostLately {
		l.order = append(l.order, e.ID)
	} else {
		delete(l.events, l.order[l.next])
		l.order[l.next] = e.ID
		l.next = (l.next + 1) % mostLately
	}
	l.events[e.ID] = e
}

// byID are those of the events that are in the books, and the last day of which
// they take none any more.
func (r *Reports) byID(ctx context.Context, tenant uuid.UUID, events []Event) (known map[uuid.UUID]Event, gone time.Time, err error) {
	ids := make([]uuid.UUID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	days := make([]time.Time, len(ids))
	for i, u := range ids {
		days[i] = id.Time(u).Truncate(day)
	}
	known = map[uuid.UUID]Event{}
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		clear(known)
		if gone, err = goneBefore(ctx, tx, tenant); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			select `+eventColumns+`
			from unnest($2::date[], $3::uuid[]) as k (day_utc, event_id)
			join usage_events using (day_utc, event_id)
			where tenant_id = $1`, tenant, days, ids)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, scanEvent)
		for _, e := range found {
			known[e.ID] = e
		}
		return err
	})
	return known, gone, err
}
