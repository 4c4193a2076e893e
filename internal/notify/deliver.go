package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

const (
	roundEvery    = 500 * time.Millisecond
	roundMost     = 512
	leaseFor      = time.Minute // longer than a try takes; then another worker may send it again
	atOnce        = 256         // tries in flight in one worker
	atOnceFailing = 64          // of them, at endpoints that failed last
	eachAtOnce    = 4           // at one endpoint
	eachFailing   = 1           // at one that failed last
)

// Deliverer sends what is due: messages to endpoints, and mail. Any number may
// run, in any number of processes: each delivery is taken under a lease, so that
// one has it; where that one dies, it is sent again once the lease has run out.
// It is safe for concurrent use.
type Deliverer struct {
	*Service
	mail   Mailer // nil: mail stays owed
	log    *slog.Logger
	random func() float64

	mu      sync.Mutex
	flying  map[uuid.UUID]int // by endpoint
	all     int
	failing int
	wait    sync.WaitGroup

	postOffice sync.Mutex // held while mail is sent

	beforeRecord func() bool // where tests kill the process: false
}

// NewDeliverer makes one.
func NewDeliverer(s *Service, mail Mailer, log *slog.Logger) *Deliverer {
	return &Deliverer{Service: s, mail: mail, log: log, random: rand.Float64, flying: map[uuid.UUID]int{}, beforeRecord: func() bool { return true }}
}

// Run sends until ctx ends, and then lets what is on its way arrive.
func (d *Deliverer) Run(ctx context.Context) error {
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	pruned := time.Time{}
	for {
		select {
		case <-ctx.Done():
			d.wait.Wait()
			return nil
		case <-tick.C:
		}
		if err := d.round(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("messages not delivered", "error", err.Error())
		}
		if time.Since(pruned) < pruneEvery {
			continue
		}
		pruned = time.Now()
		if err := d.Prune(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("old messages not pruned", "error", err.Error())
		}
	}
}

// Deliver sends what is due now and returns when all of it was answered.
func (d *Deliverer) Deliver(ctx context.Context) error {
	err := d.round(ctx)
	d.wait.Wait()
	return err
}

type dueDelivery struct {
	tenant, endpoint, message uuid.UUID
	failing                   bool
}

// round begins what is due and what there is room for.
func (d *Deliverer) round(ctx context.Context) error {
	if err := d.sendMails(ctx); err != nil {
		return err
	}
	due, err := lookup(ctx, d.db, `select tenant_id, endpoint_id, message_id, failing from lookup_due_deliveries($1, $2, $3)`,
		func(row pgx.CollectableRow) (x dueDelivery, err error) {
			err = row.Scan(&x.tenant, &x.endpoint, &x.message, &x.failing)
			return x, err
		}, d.now(), eachAtOnce, roundMost)
	if err != nil {
		return err
	}
	for _, x := range due {
		if !d.board(x) {
			continue
		}
		d.wait.Go(func() {
			defer d.land(x)
			// A try that has begun is finished and written down, whatever ends.
			if err := d.deliver(context.WithoutCancel(ctx), x); err != nil {
				d.log.Warn("a message was not delivered", "error", err.Error())
			}
		})
	}
	return nil
}

// board takes a place for a try. An endpoint has few, one that fails fewer, and
// all that fail together leave room for those that do not: an endpoint that is
// down holds up nobody else.
func (d *Deliverer) board(x dueDelivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	each := eachAtOnce
	if x.failing {
		each = eachFailing
	}
	if d.all >= atOnce || d.flying[x.endpoint] >= each || x.failing && d.failing >= atOnceFailing {
		return false
	}
	d.all++
	d.flying[x.endpoint]++
	if x.failing {
		d.failing++
	}
	return true
}

func (d *Deliverer) land(x dueDelivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.flying[x.endpoint]--; d.flying[x.endpoint] == 0 {
		delete(d.flying, x.endpoint)
	}
	if x.failing {
		d.failing--
	}
}

// deliver makes one try of one delivery, if nobody else has it.
func (d *Deliverer) deliver(ctx context.Context, x dueDelivery) error {
	p, ok, err := d.claim(ctx, x)
	if err != nil || !ok {
		return err
	}
	out := d.send(ctx, p)
	if !d.beforeRecord() {
		return nil
	}
	return d.record(ctx, p, out)
}

// lookup runs a query that sees across tenants.
func lookup[T any](ctx context.Context, db *postgres.DB, sql string, scan pgx.RowToFunc[T], args ...any) (out []T, err error) {
	err = db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	return out, err
}
