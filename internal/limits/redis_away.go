package limits

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// away is what a process does while Redis does not answer: it decides by itself,
// remembers what it admitted, and tells Redis when it is back.
type away struct {
	budget     time.Duration // 0: never
	configured int
	log        *slog.Logger
	alive      atomic.Int32
	failures   atomic.Int32 // in a row
	out        atomic.Bool  // no call goes to Redis
	returning  atomic.Bool  // but it answers, and is being told

	telling sync.Mutex // of calls that end no more

	mu      sync.Mutex
	since   time.Time             // zero: Redis answers
	alone   *alone                // while it does not
	bound   *alone                // once it does, until all others have told what they admitted
	wants   int                   // good answers in a row before it is relied on
	backAt  time.Time             // when it was last relied on again
	mine    map[uuid.UUID]*myCall // reserved by this process in Redis, open as far as is known
	sights  map[ident]sight       // what was left of ledgers when they were last seen
	pending []pendingEnd          // outcomes that Redis has to hear of
	recent  []*aloneCall          // calls of this process that ended lately
	emptied bool                  // Redis lost what it had of some tenant
	hurry   chan struct{}         // it was noticed just now
}

// sight is what was left of a ledger at an instant.
type sight struct{ left, atMS int64 }

const (
	// failuresToOpen is after how many failed calls in a row none is made any more.
	failuresToOpen = 3
	// shareFor is how long a share of what was left is granted.
	shareFor = 5 * time.Minute
	// probeEvery is how often a server that is out is tried, leastProbes how often
	// in a row it has to answer in time, mostProbes where it keeps failing.
	probeEvery  = 50 * time.Millisecond
	leastProbes = 2
	mostProbes  = 16
	relapse     = 10 * time.Second
	mostSights  = 200_000
)

func (w *away) begin(o RedisOptions) {
	w.budget, w.configured, w.log = o.Budget, max(o.Processes, 1), o.Log
	if w.log == nil {
		w.log = slog.Default()
	}
	w.wants, w.hurry = leastProbes, make(chan struct{}, 1)
	w.mine, w.sights = map[uuid.UUID]*myCall{}, map[ident]sight{}
}

// Alive tells how many processes share the limits, this one included.
func (r *Redis) Alive(processes int) { r.away.alive.Store(int32(processes)) }

// Out tells whether the process decides by itself.
func (r *Redis) Out() bool { return r.away.out.Load() }

// processes is how many share what is left.
func (w *away) processes() int64 { return max(int64(w.alive.Load()), int64(w.configured)) }

// awayError says that Redis did not answer.
type awayError struct{ cause error }

func (e awayError) Error() string { return "limits: Redis does not answer: " + e.cause.Error() }

func (e awayError) Unwrap() error { return out(e.cause) }

func isAway(err error) bool {
	var e awayError
	return errors.As(err, &e)
}

var (
	errOpen         = errors.New("not asked while it is out")
	errNotConnected = errors.New("not connected yet")
)

// send runs a script within the budget. Its error is an awayError where Redis is
// to blame, or limiter_unavailable.
func (r *Redis) send(ctx context.Context, a asked, args []string) (string, error) {
	w := &r.away
	client := r.client.Load()
	switch {
	case client == nil:
		return "", r.failed(errNotConnected)
	case w.budget == 0:
		s, err := joined(a.script.Exec(ctx, *client, a.keys, args))
		if err != nil {
			return "", out(err)
		}
		return s, nil
	case w.out.Load() && ctx.Value(leading{}) == nil && ctx.Value(passing{}) == nil:
		return "", awayError{errOpen}
	}
	budget := w.budget
	if ctx.Value(leading{}) != nil {
		budget = max(budget, time.Second)
	}
	s, err := within(ctx, budget, func(ctx context.Context) (string, error) {
		return joined(a.script.Exec(ctx, *client, a.keys, args))
	})
	if err != nil {
		if ctx.Err() != nil {
			return "", out(ctx.Err())
		}
		return "", r.failed(err)
	}
	if w.failures.Load() != 0 && !w.out.Load() {
		w.failures.Store(0)
	}
	return s, nil
}

// joined is an answer, which may come in parts.
func joined(m rueidis.RedisResult) (string, error) {
	parts, err := m.AsStrSlice()
	return strings.Join(parts, ""), err
}

// within runs do for so long at most, whether or not it heeds its context.
func within(ctx context.Context, budget time.Duration, do func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	type result struct {
		s   string
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		s, err := do(ctx)
		done <- result{s, err}
	}()
	select {
	case got := <-done:
		return got.s, got.err
	case <-ctx.Done():
		select {
		case got := <-done:
			return got.s, got.err
		default:
			return "", ctx.Err()
		}
	}
}

// failed counts a failure; after some in a row nothing is asked any more.
func (r *Redis) failed(cause error) error {
	w := &r.away
	if w.budget == 0 {
		return out(cause)
	}
	if w.failures.Add(1) >= failuresToOpen && w.out.CompareAndSwap(false, true) {
		w.hesitate(r.now())
		w.log.Error("redis is out: limits are shared out", "error", cause.Error(), "processes", w.processes())
	}
	return awayError{cause}
}

// hesitate makes a server that keeps failing wait longer each time.
func (w *away) hesitate(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.backAt) < relapse {
		w.wants = min(2*w.wants, mostProbes)
	} else {
		w.wants = leastProbes
	}
}

// sees notes what is left of a ledger, unless something later is known: answers
// overtake each other.
func (w *away) sees(c *farCharge, left int64, at *instant) {
	if w.budget == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, known := w.sights[c.id]; known && (was.atMS > at.ms || was.atMS == at.ms && was.left < left) {
		return
	}
	if len(w.sights) >= mostSights {
		clear(w.sights)
	}
	w.sights[c.id] = sight{left, at.ms}
}

// Run connects, and leads back from an outage. It returns when ctx ends.
func (r *Redis) Run(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	w := &r.away
	good := 0 // answers in a row
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-w.hurry:
		case <-tick.C:
		}
		switch {
		case !w.needed():
			good = 0
			if n%tellsEvery == 0 {
				r.present(ctx)
			}
		case !r.answers(ctx):
			good = 0
		default:
			if good++; good >= w.patience() {
				r.comeBack(ctx)
			}
		}
		if n%1200 == 0 { // every minute
			w.tidy(r.now())
		}
	}
}

// patience is how many answers in a row are wanted.
func (w *away) patience() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.out.Load() {
		return 0
	}
	return w.wants
}

// itself is what decides while Redis is out, or nil.
func (w *away) itself() *alone {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alone
}

// needed tells whether there is something to lead back from.
func (w *away) needed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Load() || w.alone != nil || len(w.pending) > 0 || w.emptied
}

func (r *Redis) answers(ctx context.Context) bool {
	if !r.connect() {
		return false
	}
	client := *r.client.Load()
	_, err := within(ctx, r.away.budget, func(ctx context.Context) (string, error) {
		return client.Do(ctx, client.B().Arbitrary("PING").Build()).ToString()
	})
	return err == nil
}

// tidy forgets calls that ran out long ago.
func (w *away) tidy(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, c := range w.mine {
		if now.Sub(c.ExpiresAt) > time.Hour {
			delete(w.mine, id)
		}
	}
}

// Close ends the connections; no call may follow.
func (r *Redis) Close() {
	if c := r.client.Load(); c != nil {
		(*c).Close()
	}
}
