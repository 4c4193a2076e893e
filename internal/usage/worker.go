package usage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"weir/internal/postgres"
	"weir/internal/queue"
)

// Worker turns messages into books: one transaction per message stores its
// events, adds up those that were new, keeps what it refuses with the reason,
// and notes the numbers as committed. The message is acknowledged after the
// commit, so it may come twice, and counts once. Any number of workers may run.
type Worker struct {
	db   *postgres.DB
	q    *queue.Conn
	keys SigningKeys
	o    WorkerOptions
	days sync.Map // partitions known to exist, by day

	classes classes

	beforeCommit, beforeAck func() // where tests kill the process
}

// WorkerOptions are a worker's bounds; zero values mean the defaults.
type WorkerOptions struct {
	Parallel int           // messages in hand at once; 2
	AckWait  time.Duration // how long a silent worker keeps a message; 30 s
	Now      func() time.Time
	Log      *slog.Logger
}

// NewWorker makes a worker. db is a pool of the worker role.
func NewWorker(db *postgres.DB, q *queue.Conn, keys SigningKeys, o WorkerOptions) *Worker {
	if o.Parallel == 0 {
		o.Parallel = 2
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Worker{db: db, q: q, keys: keys, o: o, beforeCommit: func() {}, beforeAck: func() {}}
}

// Run works until ctx ends, whatever is out meanwhile, and returns nil.
func (w *Worker) Run(ctx context.Context) error {
	err := w.q.Consume(ctx, queue.ConsumeOptions{Name: "usage-workers", Parallel: w.o.Parallel, AckWait: w.o.AckWait, Log: w.o.Log}, w.handle)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// handle ingests one message, again and again while Postgres does not commit it.
func (w *Worker) handle(ctx context.Context, m queue.Message) error {
	wait := 100 * time.Millisecond
	for tries := 0; ; tries++ {
		err := w.ingest(ctx, m)
		if err == nil {
			w.beforeAck()
			return nil
		}
		if tries == 0 {
			w.o.Log.Warn("usage message waits for the database", "message", m.ID, "error", err)
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// ingest commits everything that a message asks for, or nothing.
func (w *Worker) ingest(ctx context.Context, m queue.Message) error {
	r, err := w.keys.open(m)
	if err != nil {
		w.o.Log.Error("usage message refused", "reason", badSignature, "subject", m.Subject)
		return w.store(ctx, forged(m))
	}
	b := read(r, m, w.o.Now())
	for _, l := range b.letters {
		w.o.Log.Error("usage event refused", "reason", l.reason, "instance", r.instance, "shard", r.shard, "number", l.number)
	}
	return w.store(ctx, b)
}

// store commits the batch. Where the database takes one of its events for
// impossible, the halves are committed on their own, down to that event, which
// becomes a dead letter: the rest of a run never waits for it.
func (w *Worker) store(ctx context.Context, b batch) error {
	err := w.try(ctx, b)
	if err == nil || !impossible(err) || len(b.items) == 0 {
		return err
	}
	if b.first == b.last {
		w.o.Log.Error("usage event refused", "reason", refusedByDatabase, "instance", b.instance, "shard", b.shard, "number", b.first, "error", err)
		return w.commit(ctx, b.buried(refusedByDatabase))
	}
	low, high := b.halves()
	return errors.Join(w.store(ctx, low), w.store(ctx, high))
}

// try commits with the partitions that are known to exist, and once more without
// that knowledge: one may have been dropped.
func (w *Worker) try(ctx context.Context, b batch) error {
	err := w.ensureDays(ctx, b)
	if err == nil {
		err = w.commit(ctx, b)
	}
	if !impossible(err) {
		return err
	}
	w.days.Clear()
	if err := w.ensureDays(ctx, b); err != nil {
		return err
	}
	return w.commit(ctx, b)
}

// impossible tells whether trying again can't help: a value that a column does
// not take, or a constraint.
func impossible(err error) bool {
	code := postgres.Code(err)
	return len(code) == 5 && (code[:2] == "22" || code[:2] == "23")
}
