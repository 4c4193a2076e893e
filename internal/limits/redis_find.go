package limits

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// Found is a reservation that any process may ask about.
type Found struct {
	Reservation Reservation
	Note        []byte  // what Keep kept with it; nil: nothing
	Ended       bool    // Outcome stands
	Told        bool    // it ran out, and that was told
	Outcome     Outcome // without the state of ledgers
	Mine        bool    // this process tells of its end
}

// Keep keeps a note with an open reservation of this process, so that others can
// end it too, for as long as Redis remembers the reservation. While Redis is out
// the note is kept when it is back.
func (r *Redis) Keep(ctx context.Context, o *Reservation, note []byte) error {
	r.away.noted(o.ID, string(note))
	return r.keepNote(ctx, o.Tenant, o.ID, string(note))
}

// noteLife is how long a note is kept: a reservation may be extended at its end.
const noteLife = 2*MaxTTL + remembered

func (r *Redis) keepNote(ctx context.Context, tenant, id uuid.UUID, note string) error {
	_, err := r.ask1(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Set().Key(r.tenant(tenant).key + "n" + string(id[:])).Value(note).Px(noteLife).Build()
	})
	return err
}

// keepAgain keeps the notes of calls that Redis was told of again. One that is
// lost leaves the call to this process.
func (r *Redis) keepAgain(ctx context.Context, list []*myCall) {
	for _, c := range list {
		if note := r.away.noteOf(c); note != "" {
			_ = r.patiently(ctx, func(ctx context.Context) error { return r.keepNote(ctx, c.Tenant, c.ID, note) })
		}
	}
}

func (w *away) noteOf(c *myCall) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.note
}

// noted remembers a note, for a Redis that loses it or is out.
func (w *away) noted(id uuid.UUID, note string) {
	a := w.itself()
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[id]; c != nil {
		c.note = note
	} else if a != nil && a.calls[id] != nil {
		a.calls[id].note = note
	}
}

// Find looks at a reservation, whichever process made it. NotFound
// (reservation_not_found) is one that Redis does not know, or no more.
func (r *Redis) Find(ctx context.Context, tenant, id uuid.UUID) (Found, error) {
	t := r.tenant(tenant)
	c, err := r.peek(ctx, t, tenant, id)
	if err != nil {
		return Found{}, err
	}
	f := Found{Reservation: c.reservation(), Ended: c.phase >= settled, Told: c.phase == expired, Mine: c.owner == r.owner}
	if f.Ended {
		f.Outcome = c.ends()
	}
	note, err := r.ask1(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Get().Key(t.key + "n" + string(id[:])).Build()
	})
	if rueidis.IsRedisNil(err) {
		return f, nil
	}
	f.Note = []byte(note)
	return f, err
}

// ask1 runs one command within the budget, or a second where there is none.
func (r *Redis) ask1(ctx context.Context, command func(rueidis.Client) rueidis.Completed) (string, error) {
	w := &r.away
	client := r.client.Load()
	switch {
	case client == nil:
		return "", out(errNotConnected)
	case w.out.Load() && ctx.Value(leading{}) == nil:
		return "", out(errOpen)
	}
	budget := w.budget
	if budget == 0 || ctx.Value(leading{}) != nil {
		budget = max(budget, time.Second)
	}
	s, err := within(ctx, budget, func(ctx context.Context) (string, error) {
		return (*client).Do(ctx, command(*client)).ToString()
	})
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", out(err)
	}
	return s, err
}
