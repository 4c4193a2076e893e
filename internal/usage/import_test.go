package usage

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
)

// foreign is a call that another gateway metered, by the id that it gave it.
func foreign(tenant uuid.UUID, own string, at time.Time, tokens int64) Event {
	return Event{
		Version: version, ID: ImportID(tenant, own, at), RequestID: ImportRequestID(tenant, own, at), Tenant: tenant, Customer: sub(tenant, 1), Kind: KindImported,
		ModelAsked: "gpt-4o", StartedAt: at, EndedAt: at.Add(time.Second), LocalDay: limits.DayStart(at, time.UTC), Outcome: OK, Requests: 1,
		Tokens: limits.Tokens{Input: tokens}, Charge: money.FromInt(tokens), Currency: "USD",
	}
}

func (m *metering) imports(i *Importer, events ...Event) []Imported {
	m.t.Helper()
	got, err := i.Import(m.t.Context(), m.tenant, events)
	must(m.t, err)
	return got
}

func (m *metering) counted() Sums {
	m.t.Helper()
	m.drain()
	now := m.clock.now()
	rep, err := m.reports.Report(m.t.Context(), m.tenant, Query{From: now.Add(-40 * day), To: now.Add(time.Hour), Bucket: Day})
	must(m.t, err)
	return rep.Totals
}

func TestABatchCountsWhatIsNewInItOnce(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	at := m.clock.now().Add(-time.Minute)
	importer := NewImporter(m.spool, m.reports)
	e0, e1, e2 := foreign(m.tenant, "e0", at, 10), foreign(m.tenant, "e1", at, 10), foreign(m.tenant, "e2", at, 10)
	m.imports(importer, e0)
	m.drain()
	if got := m.imports(importer, e1, e1, e2, e0); !slices.Equal(got, []Imported{ImportStored, ImportDuplicate, ImportStored, ImportDuplicate}) {
		t.Fatalf("got %v", got)
	}
	if got := m.counted(); got.Requests != 3 || got.Tokens.Total() != 30 {
		t.Fatalf("counted %+v", got)
	}
	if m.day() != 0 {
		t.Errorf("a limit holds %d", m.day())
	}
	m.clock.advance(time.Minute)
	again := NewImporter(m.spool, m.reports) // of another process
	if got := m.imports(again, e1, e2, e0); slices.Contains(got, ImportStored) {
		t.Errorf("sent again: %v", got)
	}
	if got := m.counted(); got.Requests != 3 {
		t.Errorf("counted %+v", got)
	}
}

// TestAnImportOfADayThatIsGoneIsRefused: it may have been counted before its call
// was dropped.
func TestAnImportOfADayThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	m.books.keeps(m.tenant, 30)
	importer := NewImporter(m.spool, m.reports)
	old, edge, fresh := m.clock.now().AddDate(0, 0, -33), m.clock.now().AddDate(0, 0, -30), m.clock.now().AddDate(0, 0, -29)
	e := foreign(m.tenant, "e0", old, 10)
	m.imports(importer, e)
	m.drain()
	must(t, m.books.keeper(400, time.Now).Drop(t.Context()))
	for n, i := range []*Importer{importer, NewImporter(m.spool, m.reports)} {
		got := m.imports(i, e, foreign(m.tenant, "e1", edge, 10), foreign(m.tenant, "e2", fresh, 10))
		if got[0] != ImportTooOld || got[1] != ImportTooOld || got[2] == ImportTooOld {
			t.Errorf("importer %d: %v", n, got)
		}
	}
	eventually(t, "what is not too old is counted", func() bool {
		return query[int64](t, m.books.Worker, "select sum(requests)::bigint from usage_day") == 2
	})
	if got := m.books.letters(); got != "" {
		t.Errorf("dead letters: %s", got)
	}
}

func TestAnImportWithOtherFiguresIsAConflictAndChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	at := m.clock.now().Add(-20 * day)
	importer := NewImporter(m.spool, m.reports)
	e, other := foreign(m.tenant, "e", at, 10), foreign(m.tenant, "e", at, 11)
	if got := m.imports(importer, e, other); got[1] != ImportConflict {
		t.Fatalf("in one batch: %v", got)
	}
	m.drain()
	if got := m.imports(NewImporter(m.spool, m.reports), other, e); got[0] != ImportConflict || got[1] != ImportDuplicate {
		t.Fatalf("once it is stored: %v", got)
	}
	if got := m.counted(); got.Requests != 1 || got.Tokens.Total() != 10 {
		t.Errorf("counted %+v", got)
	}
	if at := m.imports(importer, foreign(m.tenant, "e", at.Add(time.Microsecond), 10)); at[0] != ImportStored {
		t.Errorf("the same id at another instant is another call: %v", at)
	}
}

func TestAnImportThatFailedIsCountedOnceWhenItIsSentAgain(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	at := m.clock.now().Add(-time.Minute)
	e1 := foreign(m.tenant, "e1", at, 10)
	out := newBooks(t)
	out.App.Close()
	broken := NewImporter(m.spool, NewReports(out.App, time.Now))
	if _, err := broken.Import(t.Context(), m.tenant, []Event{e1}); err == nil {
		t.Fatal("it says that it is stored while the books are out")
	}
	full, _ := spoolAt(t, t.TempDir(), SpoolOptions{})
	crash(full)
	if _, err := NewImporter(full, m.reports).Import(t.Context(), m.tenant, []Event{e1}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("while the spool is out: %v", err)
	}
	importer := NewImporter(m.spool, m.reports)
	for range 3 {
		m.imports(importer, e1)
	}
	if got := m.counted(); got.Requests != 1 || got.Tokens.Total() != 10 {
		t.Fatalf("counted %+v", got)
	}
}

func TestImportsSurviveAKillAndTeachNothing(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	at := m.clock.now().Add(-time.Minute)
	e := foreign(m.tenant, "e", at, 10)
	e.Key, e.Counter = id.New(), id.New()
	m.imports(NewImporter(m.spool, m.reports), e)
	if e.teaches() {
		t.Error("an import teaches what calls of its key take")
	}
	crash(m.spool)
	spool, rec := fastSpool(t, m.dir)
	if len(rec.Tail) != 1 || rec.Tail[0].ID != e.ID || len(rec.Open) != 0 {
		t.Fatalf("after a kill: %+v", rec)
	}
	crash(spool)
}

func TestTheIDOfAnImportFollowsFromWhatItIsOf(t *testing.T) {
	t.Parallel()
	tenant, at := id.New(), time.Now()
	same := ImportID(tenant, "a", at.Truncate(time.Microsecond))
	if ImportID(tenant, "a", at) != same || same.Version() != 7 || !id.Time(same).Equal(at.Truncate(time.Millisecond).UTC()) {
		t.Errorf("%s of %s", same, id.Time(same))
	}
	for name, other := range map[string]uuid.UUID{
		"tenant": ImportID(id.New(), "a", at), "id": ImportID(tenant, "b", at), "instant": ImportID(tenant, "a", at.Add(time.Millisecond)), "request": ImportRequestID(tenant, "a", at),
	} {
		if other == same {
			t.Errorf("another %s, and the same id", name)
		}
	}
}
