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

// Worker turns messages into books: one transaction for the messages that are
// there stores their events, adds up those that were new, keeps what it refuses
// with the reason, and notes the numbers as committed. A message is acknowledged
// after the commit, so it may come twice, and counts once. What the database
// refuses of one message keeps none of the others. Any number of workers may run.
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
	Parallel int           // transactions at once; 2
	Together int           // the most messages in one of them; 32
	AckWait  time.Duration // how long a silent worker keeps a message; 30 s
	Now      func() time.Time
	Log      *slog.Logger
}

// NewWorker makes a worker. db is a pool of the worker role.
func NewWorker(db *postgres.DB, q *queue.Conn, keys SigningKeys, o WorkerOptions) *Worker {
	if o.Parallel == 0 {
		o.Parallel = 2
	}
	if o.Together == 0 {
		o.Together = 32
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
	err := w.q.Consume(ctx, queue.ConsumeOptions{Name: "usage-workers", Parallel: w.o.Parallel, Together: w.o.Together, AckWait: w.o.AckWait, Log: w.o.Log}, w.handle)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// handle ingests messages, again and again while Postgres does not commit them.
func (w *Worker) handle(ctx context.Context, list []queue.Message) error {
	wait := 100 * time.Millisecond
	for tries := 0; ; tries++ {
		err := w.ingest(ctx, list...)
		if err == nil {
			w.beforeAck()
			return nil
		}
		if tries == 0 {
			w.o.Log.Warn("usage message waits for the database", "message", list[0].ID, "error", err)
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// ingest commits everything that the messages ask for. After an error some of
// them may be committed.
func (w *Worker) ingest(ctx context.Context, list ...queue.Message) error {
	batches := make([]batch, len(list))
	for i, m := range list {
		batches[i] = w.read(m)
	}
	return w.store(ctx, together(batches))
}

// read verifies and decodes a message.
func (w *Worker) read(m queue.Message) batch {
	r, err := w.keys.open(m)
	if err != nil {
		w.o.Log.Error("usage message refused", "reason", badSignature, "subject", m.Subject)
		return forged(m)
	}
	b := read(r, m, w.o.Now())
	for _, l := range b.letters {
		w.o.Log.Error("usage event refused", "reason", l.reason, "instance", r.instance, "shard", r.shard, "number", l.number)
	}
	return b
}

// store commits the batch. Where the database answers several messages with an
// error, each is committed on its own; where it takes an event for impossible, the
// halves of its message are, down to that event, which becomes a dead letter: the
// rest never waits for it.
func (w *Worker) store(ctx context.Context, b batch) error {
	err := w.try(ctx, b)
	if err == nil || postgres.Code(err) == "" {
		return err
	}
	if b.parts != nil {
		return w.storeEach(ctx, b.parts)
	}
	if !impossible(err) || len(b.items) == 0 {
		return err
	}
	if b.first == b.last {
		w.o.Log.Error("usage event refused", "reason", refusedByDatabase, "instance", b.instance, "shard", b.shard, "number", b.first, "error", err)
		return w.commit(ctx, b.buried(refusedByDatabase))
	}
	low, high := b.halves()
	return w.storeEach(ctx, []batch{low, high})
}

func (w *Worker) storeEach(ctx context.Context, parts []batch) (err error) {
	for _, b := range parts {
		err = errors.Join(err, w.store(ctx, b))
	}
	return err
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
