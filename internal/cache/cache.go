// Package cache keeps what every call needs and few changes touch: who a key
// is, what a customer's plan says, which provider keys there are.
//
// An entry serves for as long as a Horizon vouches for it: whoever follows the
// changes says up to which instant everything that changed was dropped. Where
// nobody does, an entry serves for Fresh after it was read, and is then read
// again, by one caller for all who wait. Either way a change is seen within
// Fresh. While the database is out, the last good entry serves for Stale; a
// definite answer ("no such key") and a known change are never overruled by a
// remembered entry.
package cache

import (
	"context"
	"hash/maphash"
	"time"

	"weir/internal/fault"
)

// Options say how long an entry of V serves.
type Options[V any] struct {
	Fresh   time.Duration // without anybody to vouch for it
	Keep    time.Duration // with; 0: as Fresh. A quarter less for some, so that not all end at once
	Stale   time.Duration // after it was last known to hold, while the database is out
	Max     int           // entries kept; beyond them the least recently used is dropped
	Now     func() time.Time
	Horizon *Horizon          // shared by the caches of one database; nil: nobody vouches
	Until   func(V) time.Time // when a value ends by itself; nil or a zero time: never
}

// Cache loads values by key. It is safe for concurrent use; values are shared
// and must not be changed.
type Cache[K comparable, V any] struct {
	o      Options[V]
	load   func(context.Context, K) (V, error)
	base   time.Time // what instants of entries are counted from
	seed   maphash.Seed
	shards []shard[K, V]
}

// New makes a cache over load.
func New[K comparable, V any](o Options[V], load func(context.Context, K) (V, error)) *Cache[K, V] {
	if o.Horizon == nil {
		o.Horizon = NewHorizon(o.Fresh)
	}
	c := &Cache[K, V]{o: o, load: load, base: o.Now(), seed: maphash.MakeSeed()}
	n := 1
	for n < mostShards && o.Max/n >= 2*fewInShard {
		n *= 2
	}
	c.shards = make([]shard[K, V], n)
	for i := range c.shards {
		c.shards[i].start(max(o.Max/n, 1))
	}
	return c
}

// A cache is cut into parts with a lock each, unless it is small.
const (
	mostShards = 32
	fewInShard = 256
)

func (c *Cache[K, V]) shard(k K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, k)&uint64(len(c.shards)-1)]
}

// Get is the value for k: remembered while it is known to hold, loaded
// otherwise. An error is load's, except that an Unavailable one is bridged by an
// entry that is not yet stale.
func (c *Cache[K, V]) Get(ctx context.Context, k K) (V, error) {
	now := c.o.Now()
	s := c.shard(k)
	s.mu.Lock()
	e, found := s.use(k)
	if found && c.holds(e, now) {
		v := e.value
		s.mu.Unlock()
		return v, nil
	}
	bridged := found && c.bridges(e, now)
	if bridged && c.o.Horizon.overrun(now) {
		v := e.value
		s.mu.Unlock()
		return v, nil
	}
	f, began := s.join(k, now, c.o.Fresh)
	s.mu.Unlock()
	if began {
		go c.reload(context.WithoutCancel(ctx), s, k, f)
	}
	v, err := c.wait(ctx, f, bridged, now)
	if err == nil || !fault.Is(err, fault.Unavailable) {
		return v, err
	}
	c.o.Horizon.trouble(c.o.Now())
	if old, ok := c.bridge(s, k); ok {
		return old, nil
	}
	return v, err
}

// bridge is what is remembered for k after its load failed. An entry that was
// dropped meanwhile is not.
func (c *Cache[K, V]) bridge(s *shard[K, V], k K) (v V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.by[k]; found && c.bridges(e, c.o.Now()) {
		return e.value, true
	}
	return v, false
}

// patience is how long a caller with an entry waits for a newer one, and haste
// how long just after somebody waited in vain: a call asks several caches. The
// load goes on, for those who come later.
const (
	patience = 250 * time.Millisecond
	haste    = 25 * time.Millisecond
)

var errSlow = fault.New(fault.Unavailable, "database_unavailable", "The database is slow to answer. Try again in a few seconds.").After(5 * time.Second)

func (c *Cache[K, V]) wait(ctx context.Context, f *flight[V], bridged bool, now time.Time) (v V, err error) {
	var late <-chan time.Time
	if bridged {
		most := patience
		if c.o.Horizon.troubled(now) {
			most = haste
		}
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-late:
		return v, errSlow
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

func (c *Cache[K, V]) reload(ctx context.Context, s *shard[K, V], k K, f *flight[V]) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	defer close(f.done)
	if f.err = c.o.Horizon.enter(ctx); f.err == nil {
		f.value, f.err = c.load(ctx, k)
		c.o.Horizon.leave()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[k] == f {
		delete(s.flights, k)
	}
	switch e, found := s.by[k]; {
	case f.dropped || found && e.read > f.began.Sub(c.base):
	case f.err == nil:
		s.put(k, f.value, f.began.Sub(c.base))
	case !fault.Is(f.err, fault.Unavailable):
		s.remove(k)
	}
}

// holds tells whether an entry serves without being read again.
func (c *Cache[K, V]) holds(e *entry[K, V], now time.Time) bool {
	read := c.base.Add(e.read)
	age := now.Sub(read)
	if e.again {
		return false
	}
	if c.o.Until != nil {
		if end := c.o.Until(e.value); !end.IsZero() && !now.Before(end) {
			return false
		}
	}
	if age < c.o.Fresh {
		return true
	}
	return c.o.Keep > 0 && age < c.o.Keep-e.read%(c.o.Keep/4+1) && c.o.Horizon.vouches(read, now)
}

// bridges tells whether an entry serves while the database is out.
func (c *Cache[K, V]) bridges(e *entry[K, V], now time.Time) bool {
	return now.Sub(c.o.Horizon.held(c.base.Add(e.read))) < c.o.Stale
}

// Drop forgets k, and what a load of it that is under way will bring.
func (c *Cache[K, V]) Drop(k K) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(k)
}

// Renew has the next Get for k load: who changed it sees that at once. What is
// remembered still bridges an outage.
func (c *Cache[K, V]) Renew(k K) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.by[k]; found {
		e.again = true
	}
	s.outdate(k)
}

// DropIf forgets every entry that is concerned, and all that loads under way
// will bring.
func (c *Cache[K, V]) DropIf(concerned func(K, V) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for k, e := range s.by {
			if concerned(k, e.value) {
				s.drop(k)
			}
		}
		for k := range s.flights {
			s.drop(k)
		}
		s.mu.Unlock()
	}
}
