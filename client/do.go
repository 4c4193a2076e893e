package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNotSent is what a function under [Client.Do] returns, alone or wrapped, when its
// call never left for the provider: the reservation is cancelled.
var ErrNotSent = errors.New("weir: the call was not sent")

// defaultTTL is what Weir gives a reservation that asks for none.
const defaultTTL = 10 * time.Minute

// Do runs a call under a reservation: it reserves, keeps the reservation alive
// while call runs, and settles with the result that call reports. Where call
// returns ErrNotSent the reservation is cancelled. Another error is returned, beside what
// it used; its outcome, if it reports none, is aborted where ctx has ended, and provider_error
// otherwise. A panic settles as aborted and goes on.
//
// A refusal is a *Refusal, and call does not run. The reservation is ended also
// after ctx is; where that fails, the error says so, and it expires by itself.
func (c *Client) Do(ctx context.Context, k Call, call func(ctx context.Context, r Reservation) (Result, error)) (Settled, error) {
	r, err := c.Reserve(ctx, k)
	if err != nil {
		return Settled{}, err
	}
	result, finished := Result{Outcome: Aborted}, false
	stop := c.KeepAlive(ctx, r.ID, k.TTL)
	defer func() {
		stop()
		if !finished {
			_, _ = c.Settle(context.WithoutCancel(ctx), r.ID, result) // the panic says more
		}
	}()
	result, err = call(ctx, r)
	finished = true
	stop()
	done, ended := c.end(ctx, r.ID, result, err)
	return done, errors.Join(err, ended)
}

func (c *Client) end(ctx context.Context, id string, r Result, err error) (Settled, error) {
	gone := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	switch {
	case errors.Is(err, ErrNotSent):
		return c.Cancel(ctx, id)
	case r.Outcome != "":
	case err == nil:
		r.Outcome = OK
	case gone:
		r.Outcome = Aborted
	default:
		r.Outcome = ProviderError
	}
	return c.Settle(ctx, id, r)
}

// KeepAlive extends a reservation to ttl (0: 10 minutes) from now, over and over while it runs,
// three times within each ttl. It ends when stop is called, which waits for it, when ctx
// ends, or when the reservation has ended. stop may be called again.
func (c *Client) KeepAlive(ctx context.Context, id string, ttl time.Duration) (stop func()) {
	if ttl <= 0 {
		ttl = defaultTTL
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for c.sleep(ctx, ttl/3) == nil {
			_, err := c.Extend(ctx, id, ttl)
			if errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
