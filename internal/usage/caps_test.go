package usage

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue/queuetest"
)

func windowsOf(e Event) []limits.WindowKey {
	return []limits.WindowKey{
		{Ledger: "customer:" + uuid.Nil.String() + "/tokens/day", WindowStart: e.LocalDay},
		{Ledger: e.Charges[0].Ledger, WindowStart: e.Charges[0].WindowStart},
		{Ledger: e.Charges[0].Ledger, WindowStart: e.Charges[0].WindowStart.AddDate(0, 0, -1)},
	}
}

func (b *Books) total(t *testing.T, e Event) int64 {
	t.Helper()
	totals, err := b.CapTotals(t.Context(), e.Tenant, windowsOf(e))
	must(t, err)
	if len(totals) != 3 || totals[0] != (limits.Total{}) || totals[2] != (limits.Total{}) {
		t.Fatalf("totals are %v", totals)
	}
	return totals[1].Amount
}

func TestSpentCapIsStillSpentAfterKill(t *testing.T) {
	t.Parallel()
	db, nats, dir, tenant := postgrestest.New(t), queuetest.New(t), t.TempDir(), id.New()
	s, _ := fastSpool(t, dir)
	p, stop := publishing(t, s, nats.Connect(), db.App)
	stopWorker := working(t, nats.Connect(), db.Worker)
	one := call(tenant, time.Now())
	end := func(n int) {
		for range n {
			e := call(tenant, one.StartedAt)
			must(t, s.Admit(admission(e)))
			must(t, s.Finish(&e))
		}
	}
	end(30)
	drained(t, p)
	stopWorker()
	end(20) // in no books
	stop()
	crash(s)

	s, rec := fastSpool(t, dir)
	expired := call(tenant, one.StartedAt)
	expired.Outcome = Expired
	must(t, s.Admit(admission(expired)))
	must(t, s.Finish(&expired))
	b := NewBooks(db.App, s.Instance(), append(rec.Tail, Ended{expired.ID, tenant, expired.Shard, expired.Number, expired.Charges}))
	if got := b.total(t, one); got != 510 {
		t.Fatalf("51 calls of 10 tokens spent %d", got)
	}
	p, _ = publishing(t, s, nats.Connect(), db.App)
	working(t, nats.Connect(), db.Worker)
	for !p.spool.progress().drained() { // whatever is committed meanwhile
		if got := b.total(t, one); got != 510 {
			t.Fatalf("51 calls of 10 tokens spent %d while they were committed", got)
		}
	}
	if got := b.total(t, one); got != 510 || len(b.tail) > 0 {
		t.Fatalf("51 calls of 10 tokens spent %d, %d tenants kept", got, len(b.tail))
	}
	if got := NewBooks(db.App, s.Instance(), nil).total(t, call(id.New(), time.Now())); got != 0 {
		t.Fatalf("another tenant spent %d", got)
	}
}

func TestCapsAreUnknownWhileTheDatabaseIsOut(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	s, _ := fastSpool(t, t.TempDir())
	restore := db.Outage(t)
	defer restore()
	e := call(id.New(), time.Now())
	if _, err := NewBooks(db.App, s.Instance(), nil).CapTotals(t.Context(), e.Tenant, windowsOf(e)); err == nil || fault.Of(err).Kind != fault.Unavailable {
		t.Fatalf("got %v", err)
	}
}

func TestAReadingOfTheBooksHeldExactlyTheCallsOfItsTotals(t *testing.T) {
	t.Parallel()
	db, nats, tenant := postgrestest.New(t), queuetest.New(t), id.New()
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, nats.Connect(), db.App)
	for range 3 { // whose transactions overlap
		working(t, nats.Connect(), db.Worker)
	}
	b := NewBooks(db.App, s.Instance(), nil)
	one := call(tenant, time.Now())
	var calls []uuid.UUID
	type reading struct {
		total int64
		of    string
	}
	var readings []reading
	read := func() {
		totals, of, err := b.Read(t.Context(), tenant, windowsOf(one))
		must(t, err)
		readings = append(readings, reading{totals[1].Amount, of})
	}
	for n := range 400 {
		e := call(tenant, one.StartedAt)
		must(t, s.Admit(admission(e)))
		must(t, s.Finish(&e))
		if calls = append(calls, e.ID); n%20 == 0 {
			read()
		}
	}
	for !p.spool.progress().drained() {
		read()
	}
	read()
	for i, r := range readings {
		held, err := b.Held(t.Context(), tenant, r.of, calls)
		must(t, err)
		if int64(10*len(held)) != r.total {
			t.Fatalf("reading %d (%s) told %d tokens, and held %d calls of 10", i, r.of, r.total, len(held))
		}
	}
	if last := readings[len(readings)-1]; last.total != 4000 {
		t.Fatalf("400 calls of 10 tokens spent %d", last.total)
	}
}
