package usage

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"weir/internal/postgres"
	"weir/internal/queue"
)

// Publisher carries a spool's ended calls to the queue, and learns from Postgres
// which of them the books have. The queue may lose what it took: an event counts
// as delivered only when its number is committed, and what makes no progress is
// sent again from disk. Memory is bounded by one window of runs, however long
// the queue is away.
type Publisher struct {
	spool *Spool
	queue *queue.Conn
	db    *postgres.DB
	keys  SigningKeys
	o     PublisherOptions

	at     position             // where reading goes on
	sent   [Shards]int64        // the last number that was read for sending
	spare  [][]byte             // memory of runs that were delivered, at most one a shard
	resend chan int             // shards to read again
	doubt  [Shards]atomic.Int64 // numbers up to here are sent whether committed or not
	fresh  freshness

	tookMu sync.Mutex
	took   [Shards]int64 // the last number that the queue has taken
}

// PublisherOptions are the publisher's times; zero values mean the defaults.
type PublisherOptions struct {
	PollEvery   time.Duration // how often committed numbers are asked for; 500 ms
	ResendAfter time.Duration // how long nothing may move before events are sent again; 30 s
	BeatEvery   time.Duration // how often the instance says that it lives; 5 s
	Peers       func(n int)   // told how many other instances live, whenever that changes; may be nil
	For         uuid.UUID     // the instance that has adopted the spool; uuid.Nil: it is its own
	Log         *slog.Logger
}

// NewPublisher makes the one publisher of a spool. db is a pool of the app role.
func NewPublisher(s *Spool, q *queue.Conn, db *postgres.DB, keys SigningKeys, o PublisherOptions) *Publisher {
	if o.PollEvery == 0 {
		o.PollEvery = 500 * time.Millisecond
	}
	if o.ResendAfter == 0 {
		o.ResendAfter = 30 * time.Second
	}
	if o.BeatEvery == 0 {
		o.BeatEvery = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Publisher{spool: s, queue: q, db: db, keys: keys, o: o, resend: make(chan int, 2*Shards)}
}

// Run works until ctx ends, whatever is out meanwhile, and returns nil. An
// instance that stops calls Drained first, and closes the spool after.
func (p *Publisher) Run(ctx context.Context) error {
	p.firstMarks(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { p.send(ctx) })
	loops.Go(func() { p.follow(ctx) })
	loops.Go(func() { p.beats(ctx) })
	loops.Wait()
	return nil
}

// Drained returns nil when the books have every event of the spool, or ctx's
// error before that. It needs Run to be running.
func (p *Publisher) Drained(ctx context.Context) error {
	for {
		changed := p.spool.watch()
		if p.spool.progress().drained() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// send publishes what is durable and neither committed nor sent.
func (p *Publisher) send(ctx context.Context) {
	_ = p.queue.EnsureStream(ctx) // if that fails, Publish says so
	for shard, missing := range p.spool.progress().missing {
		p.sent[shard] = missing - 1
	}
	for ctx.Err() == nil {
		p.rewindAll()
		changed := p.spool.watch()
		runs, err := p.window()
		if err != nil {
			p.o.Log.Error("spool not readable", "error", err)
		}
		p.deliver(ctx, runs)
		p.delivered(runs)
		if len(runs) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case shard := <-p.resend:
			p.rewind(shard)
		}
	}
}

func (p *Publisher) rewindAll() {
	for {
		select {
		case shard := <-p.resend:
			p.rewind(shard)
		default:
			return
		}
	}
}

// rewind goes back to the first event of the shard that is not committed, or
// whose being committed is in doubt.
func (p *Publisher) rewind(shard int) {
	if p.doubt[shard].Load() > 0 {
		p.sent[shard], p.at = 0, position{}
		return
	}
	missing := p.spool.progress().missing[shard]
	if p.sent[shard] < missing {
		return
	}
	p.sent[shard] = missing - 1
	if pos := p.spool.find(shard, missing); pos.before(p.at) {
		p.at = pos
	}
}

func (p position) before(o position) bool { return p.seq < o.seq || p.seq == o.seq && p.off < o.off }
