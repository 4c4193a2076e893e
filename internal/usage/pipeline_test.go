package usage

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue"
	"weir/internal/queue/queuetest"
)

// publishing starts the publisher of a spool; it ends with the test, or by stop.
func publishing(t *testing.T, s *Spool, q *queue.Conn, db *postgres.DB) (p *Publisher, stop func()) {
	t.Helper()
	p = NewPublisher(s, q, db, testKeys, PublisherOptions{PollEvery: 20 * time.Millisecond, ResendAfter: 300 * time.Millisecond, BeatEvery: 50 * time.Millisecond, Log: quiet(t)})
	return p, background(t, p.Run)
}

func working(t *testing.T, q *queue.Conn, db *postgres.DB) (stop func()) {
	t.Helper()
	return background(t, NewWorker(db, q, testKeys, WorkerOptions{AckWait: time.Second, Log: quiet(t)}).Run)
}

// background runs f until stop or the end of the test.
func background(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// fastSpool is a spool that syncs all the time.
func fastSpool(t *testing.T, dir string) (*Spool, Recovery) {
	t.Helper()
	return spoolAt(t, dir, SpoolOptions{SyncEvery: 5 * time.Millisecond, SegmentBytes: 64 << 10})
}

// spend ends n calls of tenants that share them.
func spend(t *testing.T, s *Spool, n int) {
	t.Helper()
	tenants := []uuid.UUID{id.New(), id.New(), id.New()}
	for i := range n {
		e := call(tenants[i%len(tenants)], time.Now())
		must(t, s.Admit(admission(e)))
		must(t, s.Finish(&e))
	}
}

func drained(t *testing.T, p *Publisher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := p.Drained(ctx); err != nil {
		t.Fatalf("not drained: %v, %+v", err, p.spool.progress())
	}
}

func TestEndedCallsReachTheBooksOnce(t *testing.T) {
	t.Parallel()
	db, q := postgrestest.New(t), queuetest.New(t).Connect()
	s, _ := fastSpool(t, t.TempDir())
	p, stop := publishing(t, s, q, db.App)
	working(t, q, db.Worker)
	spend(t, s, 1500)
	drained(t, p)
	wantTotals(t, db.Worker, calls(1500))
	stop()
	if !query[bool](t, db.App, "select stopped_at is not null and fresh_at is not null and oldest_open is null from instances where instance_id = $1", s.Instance()) {
		t.Fatal("the instance did not say that it stopped with everything committed")
	}
}

func TestBothEndsStartAndWaitWhileTheQueueIsDown(t *testing.T) {
	t.Parallel()
	db, nats := postgrestest.New(t), queuetest.NewStopped(t)
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, nats.Connect(), db.App)
	working(t, nats.Connect(), db.Worker)
	spend(t, s, 300)
	nats.Start()
	drained(t, p)
	nats.Stop()
	spend(t, s, 300)
	nats.Start()
	drained(t, p)
	wantTotals(t, db.Worker, calls(600))
}

func TestWhatTheQueueLosesIsSentAgainAndCountsOnce(t *testing.T) {
	t.Parallel()
	db, nats := postgrestest.New(t), queuetest.New(t)
	q := nats.Connect()
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, q, db.App)
	stop := working(t, q, db.Worker)
	spend(t, s, 200)
	drained(t, p)
	stop()

	spend(t, s, 400)
	eventually(t, "everything is in the queue", func() bool { return inQueue(t, q) > 0 && inStep(p) })
	nats.Stop()
	nats.Wipe()
	nats.Start()
	working(t, q, db.Worker)
	spend(t, s, 10)
	drained(t, p)
	wantTotals(t, db.Worker, calls(610))
}

// TestAStreamThatIsDeletedWhileAllRunsSkipsAndDoublesNothing: what waited in it is
// gone, and its sequence begins anew. F12 of the faults.
func TestAStreamThatIsDeletedWhileAllRunsSkipsAndDoublesNothing(t *testing.T) {
	t.Parallel()
	db, nats := postgrestest.New(t), queuetest.New(t)
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, nats.Connect(), db.App)
	working(t, nats.Connect(), db.Worker)
	working(t, nats.Connect(), db.Worker)
	for range 5 {
		spend(t, s, 100)
		nats.DeleteStream()
		spend(t, s, 100)
	}
	drained(t, p)
	wantTotals(t, db.Worker, calls(1000))
	if n := query[int](t, db.Worker, "select count(*) from dead_letters"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestWhatAFullStreamRefusesStaysInTheSpool: calls go on, nothing is dropped, and
// all of it is counted once there is room again. F13 of the faults.
func TestWhatAFullStreamRefusesStaysInTheSpool(t *testing.T) {
	t.Parallel()
	db, nats := postgrestest.New(t), queuetest.New(t)
	small := func() *queue.Conn {
		q, err := queue.Connect(queue.Options{URL: nats.URL, StreamBytes: 2 << 20})
		must(t, err)
		t.Cleanup(q.Close)
		return q
	}
	s, _ := fastSpool(t, t.TempDir())
	q := small()
	p, _ := publishing(t, s, q, db.App)
	spend(t, s, 3000)
	eventually(t, "the stream is full", func() bool { return inQueue(t, q) > 0 && !inStep(p) })
	spend(t, s, 1000)
	if inStep(p) {
		t.Fatal("a full stream took everything")
	}
	working(t, small(), db.Worker)
	drained(t, p)
	wantTotals(t, db.Worker, calls(4000))
}

// inQueue is how many messages wait in all shards.
func inQueue(t *testing.T, q *queue.Conn) (n uint64) {
	t.Helper()
	for shard := range Shards {
		waiting, err := q.Waiting(t.Context(), queue.Subject(shard))
		must(t, err)
		n += waiting
	}
	return n
}

// inStep tells whether the queue has taken everything that was given a number.
func inStep(p *Publisher) bool {
	for shard, given := range p.spool.progress().given {
		if p.taken(shard) < given {
			return false
		}
	}
	return true
}

func TestRestartedInstanceGoesOnWhereTheBooksAre(t *testing.T) {
	t.Parallel()
	db, nats, dir := postgrestest.New(t), queuetest.New(t), t.TempDir()
	working(t, nats.Connect(), db.Worker)
	for range 4 {
		s, _ := fastSpool(t, dir)
		_, stop := publishing(t, s, nats.Connect(), db.App)
		spend(t, s, 150)
		stop() // at any place
		crash(s)
	}
	s, rec := fastSpool(t, dir)
	if len(rec.Damage) > 0 {
		t.Fatal(rec.Damage)
	}
	p, _ := publishing(t, s, nats.Connect(), db.App)
	drained(t, p)
	wantTotals(t, db.Worker, calls(600))
}

func TestSpoolShrinksWhileItIsInUseAndKeepsOpenCalls(t *testing.T) {
	t.Parallel()
	db, nats, dir, tenant := postgrestest.New(t), queuetest.New(t), t.TempDir(), id.New()
	working(t, nats.Connect(), db.Worker)
	s, _ := spoolAt(t, dir, SpoolOptions{SyncEvery: 5 * time.Millisecond, SegmentBytes: 32 << 10, KeepFor: time.Nanosecond})
	p, stop := publishing(t, s, nats.Connect(), db.App)
	var long []Event
	for range 5 {
		long = append(long, call(tenant, time.Now()))
		must(t, s.Admit(admission(long[len(long)-1])))
		spend(t, s, 200)
	}
	drained(t, p)
	files := func() int { seqs, err := segments(dir); must(t, err); return len(seqs) }
	eventually(t, "what is committed is gone", func() bool { return files() <= 2 })
	stop()
	crash(s)

	s, rec := fastSpool(t, dir)
	if len(rec.Open) != len(long) || len(rec.Damage) > 0 {
		t.Fatalf("%d of %d calls are open, damage %v", len(rec.Open), len(long), rec.Damage)
	}
	p, _ = publishing(t, s, nats.Connect(), db.App)
	for i := range long {
		must(t, s.Finish(&long[i]))
	}
	drained(t, p)
	wantTotals(t, db.Worker, calls(1005))
}

// TestARetiredInstanceThatComesBackIsWaitedForAgain: what it left is for whoever
// finds its spool, and once it lives, reports are complete only as far as it says.
func TestARetiredInstanceThatComesBackIsWaitedForAgain(t *testing.T) {
	t.Parallel()
	db, nats, dir, tenant := postgrestest.New(t), queuetest.New(t), t.TempDir(), id.New()
	reports := NewReports(db.App, time.Now)
	working(t, nats.Connect(), db.Worker)
	s, _ := fastSpool(t, dir)
	_, stop := publishing(t, s, nats.Connect(), db.App)
	e := call(tenant, time.Now())
	must(t, s.Admit(admission(e)))
	eventually(t, "it says that a call is open", func() bool {
		return query[bool](t, db.App, "select exists (select from instances where oldest_open is not null)")
	})
	stop()
	crash(s)
	owner(t, db, "update instances set retired_at = now(), stopped_at = null")
	if over, err := reports.Over(t.Context(), s.Instance()); err != nil || over {
		t.Errorf("what a retired instance left is looked for by nobody: %v, %v", over, err)
	}

	s, _ = fastSpool(t, dir)
	p, _ := publishing(t, s, nats.Connect(), db.App)
	eventually(t, "reports wait for its open call", func() bool {
		rep, err := reports.Report(t.Context(), tenant, Query{From: time.Now().Add(-time.Hour), To: time.Now(), Bucket: Hour})
		must(t, err)
		return !rep.CompleteUntil.After(e.StartedAt)
	})
	must(t, s.Finish(&e))
	drained(t, p)
	wantTotals(t, db.Worker, calls(1))
}

func TestOlderCopyOfTheSpoolLosesNothingNew(t *testing.T) {
	t.Parallel()
	db, nats, dir := postgrestest.New(t), queuetest.New(t), t.TempDir()
	working(t, nats.Connect(), db.Worker)
	s, _ := fastSpool(t, dir)
	p, stop := publishing(t, s, nats.Connect(), db.App)
	tenant := id.New()
	end := func(n int) {
		for range n {
			e := call(tenant, time.Now())
			must(t, s.Admit(admission(e)))
			must(t, s.Finish(&e))
		}
	}
	end(50)
	drained(t, p)
	older := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(older, os.DirFS(dir)))
	end(50)
	drained(t, p)
	stop()
	crash(s)

	s, _ = fastSpool(t, older)
	end(30) // under numbers that the books have already
	p, _ = publishing(t, s, nats.Connect(), db.App)
	eventually(t, "the new calls are in the books", func() bool {
		return query[int](t, db.Worker, "select count(*) from usage_events") == 130
	})
	end(20)
	drained(t, p)
	wantTotals(t, db.Worker, calls(150))
}

func TestDatabaseThatRefusesCommitsLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	db, q := postgrestest.New(t), queuetest.New(t).Connect()
	owner(t, db, `
		create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no commit'; end $$;
		create constraint trigger refuse after insert or update on usage_marks deferrable initially deferred for each row execute function refuse()`)
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, q, db.App)
	tried := make(chan struct{})
	w := NewWorker(db.Worker, q, testKeys, WorkerOptions{AckWait: time.Second, Log: quiet(t)})
	w.beforeCommit = sync.OnceFunc(func() { close(tried) })
	background(t, w.Run)
	spend(t, s, 100)
	<-tried
	if n := query[int](t, db.Worker, "select count(*) from usage_events"); n != 0 {
		t.Fatalf("%d events are in books that refuse", n)
	}
	owner(t, db, "drop trigger refuse on usage_marks")
	drained(t, p)
	wantTotals(t, db.Worker, calls(100))
}

func TestDatabaseOutageLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	db, q := postgrestest.New(t), queuetest.New(t).Connect()
	s, _ := fastSpool(t, t.TempDir())
	p, _ := publishing(t, s, q, db.App)
	working(t, q, db.Worker)
	spend(t, s, 50)
	drained(t, p)
	restore := db.Outage(t)
	spend(t, s, 100)
	eventually(t, "the queue holds what the database can't take", func() bool { return inStep(p) })
	if err := db.Worker.Ping(t.Context()); err == nil {
		t.Fatal("the database answers")
	}
	restore()
	drained(t, p)
	wantTotals(t, db.Worker, calls(150))
}

func TestBooksSayUpToWhenTheyAreComplete(t *testing.T) {
	t.Parallel()
	var f freshness
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	look := func(s int, given, missing int64) time.Time {
		p := progress{}
		for shard := range p.missing {
			p.missing[shard] = 1
		}
		p.given[3], p.missing[3] = given, missing
		f.observe(at(s), p)
		return f.until()
	}
	if got := look(0, 0, 1); !got.Equal(at(0)) {
		t.Fatalf("nothing happened: complete until %v", got)
	}
	look(1, 10, 1)
	look(2, 20, 5)
	if got := f.until(); !got.Equal(at(0)) {
		t.Fatalf("nothing new is whole: complete until %v", got)
	}
	if got := look(3, 30, 15); !got.Equal(at(1)) {
		t.Fatalf("all up to 10 are committed: complete until %v", got)
	}
	for s := 4; s < 1000; s++ {
		look(s, int64(10*s), 15)
	}
	if len(f.points) > maxPoints {
		t.Fatalf("%d points are kept", len(f.points))
	}
	if got := look(1000, 10_000, 10_001); !got.Equal(at(1000)) {
		t.Fatalf("all is committed: complete until %v", got)
	}
}
