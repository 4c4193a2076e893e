// Package cache keeps what every call needs and few changes touch: who a key
// is, what a customer's plan says, which provider keys there are.
//
// An entry is served for Fresh after it was read, so a change is seen
// everywhere within that time without anybody being told. After that it is
// read again, by one caller for all who wait. While the database is out, the
// last good entry serves for Stale; a definite answer ("no such key") is never
// overruled by a remembered one.
package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"weir/internal/fault"
)

// Options say how long an entry serves.
type Options struct {
	Fresh time.Duration
	Stale time.Duration
	Max   int // entries kept; more are dropped at random
	Now   func() time.Time
}

// Cache loads values by key. It is safe for concurrent use; values are shared
// and must not be changed.
type Cache[K comparable, V any] struct {
	o      Options
	load   func(context.Context, K) (V, error)
	flight singleflight.Group
	mu     sync.RWMutex
	by     map[K]entry[V]
}

type entry[V any] struct {
	value V
	read  time.Time // when the load began
}

// New makes a cache over load.
func New[K comparable, V any](o Options, load func(context.Context, K) (V, error)) *Cache[K, V] {
	return &Cache[K, V]{o: o, load: load, by: map[K]entry[V]{}}
}

// Get is the value for k: remembered while fresh, loaded otherwise. An error is
// load's, except that an Unavailable one is bridged by an entry that is not yet
// stale.
func (c *Cache[K, V]) Get(ctx context.Context, k K) (V, error) {
	c.mu.RLock()
	e, found := c.by[k]
	c.mu.RUnlock()
	if found && c.o.Now().Sub(e.read) < c.o.Fresh {
		return e.value, nil
	}
	loaded := c.flight.DoChan(fmt.Sprint(k), func() (any, error) {
		return c.reload(context.WithoutCancel(ctx), k)
	})
	v, err := c.wait(ctx, loaded, found)
	if err == nil {
		return v.(V), nil
	}
	if found && fault.Is(err, fault.Unavailable) && c.o.Now().Sub(e.read) < c.o.Stale {
		return e.value, nil
	}
	var zero V
	return zero, err
}

// patience is how long a caller with an entry waits for a newer one. The load
// goes on, for those who come later.
const patience = 250 * time.Millisecond

var errSlow = fault.New(fault.Unavailable, "database_unavailable", "The database is slow to answer. Try again in a few seconds.").After(5 * time.Second)

func (c *Cache[K, V]) wait(ctx context.Context, loaded <-chan singleflight.Result, found bool) (any, error) {
	var late <-chan time.Time
	if found {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case r := <-loaded:
		return r.Val, r.Err
	case <-late:
		return nil, errSlow
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Cache[K, V]) reload(ctx context.Context, k K) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := c.o.Now()
	v, err := c.load(ctx, k)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.makeRoom()
		c.by[k] = entry[V]{v, began}
	case !fault.Is(err, fault.Unavailable):
		delete(c.by, k)
	}
	return v, err
}

// Drop has the next Get for k load: who changed it sees that at once. A load that
// runs already may still bring what was before, for Fresh at the most.
func (c *Cache[K, V]) Drop(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, found := c.by[k]; found {
		e.read = e.read.Add(-c.o.Fresh) // it still bridges an outage
		c.by[k] = e
	}
}

func (c *Cache[K, V]) makeRoom() {
	for k := range c.by {
		if len(c.by) < c.o.Max {
			return
		}
		delete(c.by, k)
	}
}
