package usage

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// Estimates tells what calls of a key and model have really taken: what the next
// one is likely to. It remembers in the process, and asks the books in the
// background. It is safe for concurrent use.
type Estimates struct {
	db  *postgres.DB
	now func() time.Time
	log *slog.Logger

	wanted chan estimateOf

	mu    sync.Mutex
	known map[estimateOf]*estimate
}

type estimateOf struct {
	tenant, counter uuid.UUID
	model           string
}

// estimate is what is remembered of a key and model.
type estimate struct {
	outputP95   int64
	inputFactor float64
	ok          bool
	asked       bool      // it is being read
	due         time.Time // when it is to be read again
}

const (
	mostEstimates = 50_000          // remembered
	askedEvery    = 2 * time.Minute // for those that are used
	askedSoon     = 5 * time.Second // while too few calls tell
	fewestCalls   = 20              // that teach anything
	learnedOver   = 14 * day
	halfLife      = 2 * day // of what a day weighs

	leastFactor, mostFactor = 0.5, 3
)

// NewEstimates makes a reader. db is a pool of the app role. It learns nothing
// until Run runs.
func NewEstimates(db *postgres.DB, log *slog.Logger, now func() time.Time) *Estimates {
	return &Estimates{db: db, now: now, log: log, wanted: make(chan estimateOf, 1024), known: map[estimateOf]*estimate{}}
}

// Of is what calls of a key (by its counter) that ask for the model have taken
// lately: so many output tokens at most in 19 of 20 calls, and so many input
// tokens for each that was guessed, from 0.5 to 3. ok is false where fewer than 20
// calls tell, or nothing was read yet. It never waits: what is not known is read
// for those who come later.
func (e *Estimates) Of(tenant, counter uuid.UUID, model string) (outputP95 int64, inputFactor float64, ok bool) {
	of, now := estimateOf{tenant, counter, model}, e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.known[of]
	if k == nil {
		e.makeRoom()
		k = &estimate{}
		e.known[of] = k
	}
	if !k.asked && !now.Before(k.due) {
		select {
		case e.wanted <- of:
			k.asked = true
		default: // the next call asks
		}
	}
	return k.outputP95, k.inputFactor, k.ok
}

// makeRoom forgets some where there are too many: whichever, they are read again.
func (e *Estimates) makeRoom() {
	for of := range e.known {
		if len(e.known) < mostEstimates {
			return
		}
		delete(e.known, of)
	}
}

// Run reads what is wanted until ctx ends.
func (e *Estimates) Run(ctx context.Context) error {
	trouble := trouble{log: e.log, what: "estimates not read"}
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-e.wanted:
			list := append([]estimateOf{first}, e.waiting()...)
			trouble.say(ctx, e.read(ctx, list))
		}
	}
}

// waiting is what else is wanted now.
func (e *Estimates) waiting() (list []estimateOf) {
	for len(list) < cap(e.wanted) {
		select {
		case of := <-e.wanted:
			list = append(list, of)
		default:
			return list
		}
	}
	return list
}

// read reads a list, tenant by tenant. What cannot be read is wanted again after a
// while.
func (e *Estimates) read(ctx context.Context, list []estimateOf) (err error) {
	byTenant := map[uuid.UUID][]estimateOf{}
	for _, of := range list {
		byTenant[of.tenant] = append(byTenant[of.tenant], of)
	}
	for tenant, wanted := range byTenant {
		found, failed := e.lessons(ctx, tenant, wanted)
		if failed != nil {
			err = failed
		}
		now := e.now()
		e.mu.Lock()
		for _, of := range wanted {
			k := e.known[of]
			if k == nil {
				continue
			}
			if failed == nil {
				k.learn(found[of])
			}
			k.asked, k.due = false, now.Add(askedEvery)
			if !k.ok {
				k.due = now.Add(askedSoon)
			}
		}
		e.mu.Unlock()
	}
	return err
}

// lessons reads what was learned of some keys and models of a tenant; of a model
// without a row of its own, what was learned of those beyond the bound.
func (e *Estimates) lessons(ctx context.Context, tenant uuid.UUID, wanted []estimateOf) (found map[estimateOf]*lesson, err error) {
	counters, models := make([][16]byte, len(wanted)), make([]string, len(wanted))
	for i, of := range wanted {
		counters[i], models[i] = of.counter, of.model
	}
	today := e.now().UTC().Truncate(day)
	err = e.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		found = map[estimateOf]*lesson{}
		rows, err := tx.Query(ctx, `
			select k.counter_id, k.model, e.model <> '', e.day_utc, e.calls, e.guesses, e.guessed_tokens, e.guessed_input_tokens, e.outputs
			from unnest($2::uuid[], $3::text[]) as k (counter_id, model)
			join usage_estimates e on e.tenant_id = $1 and e.counter_id = k.counter_id and e.model in (k.model, '') and e.day_utc > $4::date`,
			tenant, counters, models, today.Add(-learnedOver))
		if err != nil {
			return err
		}
		of := estimateOf{tenant: tenant}
		var own bool
		var d time.Time
		var l learned
		_, err = pgx.ForEachRow(rows, []any{&of.counter, &of.model, &own, &d, &l.calls, &l.guesses, &l.guessed, &l.guessedInput, &l.outputs}, func() error {
			if found[of] == nil {
				found[of] = &lesson{}
			}
			found[of].add(own, math.Exp2(-max(float64(today.Sub(d)), 0)/float64(halfLife)), &l)
			return nil
		})
		return err
	})
	return found, err
}

// lesson is what days say, each by its weight.
type lesson struct{ own, others weighed }

type weighed struct {
	calls, guesses  int64
	guessed, really float64
	outputs         []float64
}

func (l *lesson) add(own bool, weight float64, of *learned) {
	w := &l.others
	if own {
		w = &l.own
	}
	w.calls += of.calls
	w.guesses += of.guesses
	w.guessed += weight * float64(of.guessed)
	w.really += weight * float64(of.guessedInput)
	for bucket, n := range of.outputs {
		for len(w.outputs) <= bucket {
			w.outputs = append(w.outputs, 0)
		}
		w.outputs[bucket] += weight * float64(n)
	}
}

// learn takes over what days say; nil: nothing.
func (k *estimate) learn(l *lesson) {
	k.outputP95, k.inputFactor, k.ok = 0, 1, false
	if l == nil {
		return
	}
	w := &l.own
	if w.calls == 0 {
		w = &l.others
	}
	if w.calls < fewestCalls {
		return
	}
	k.ok, k.outputP95 = true, w.p95()
	if w.guesses >= fewestCalls && w.guessed > 0 {
		k.inputFactor = min(max(w.really/w.guessed, leastFactor), mostFactor)
	}
}

// p95 is the top of the bucket up to which 19 of 20 calls are.
func (w *weighed) p95() int64 {
	var all, sum float64
	for _, n := range w.outputs {
		all += n
	}
	for bucket, n := range w.outputs {
		if sum += n; sum >= 0.95*all {
			return topOf(bucket)
		}
	}
	return topOf(max(len(w.outputs)-1, 0))
}
