package cache

import (
	"sync"
	"time"
)

// shard is a part of a cache: entries in the order of their use, and the loads
// that are under way.
type shard[K comparable, V any] struct {
	mu      sync.Mutex
	max     int
	by      map[K]*entry[K, V]
	ends    entry[K, V] // of the ring: next is the most recently used, prev the least
	flights map[K]*flight[V]
}

type entry[K comparable, V any] struct {
	prev, next *entry[K, V]
	key        K
	value      V
	read       time.Duration // when its load began, from the cache's base
	again      bool          // it is to be read again, whoever vouches for it
}

// flight is a load that any number of callers wait for.
type flight[V any] struct {
	began   time.Time
	done    chan struct{}
	dropped bool // what it brings was read before a change: under the shard's lock
	value   V
	err     error
}

func (s *shard[K, V]) start(most int) {
	s.max, s.by, s.flights = most, map[K]*entry[K, V]{}, map[K]*flight[V]{}
	s.ends.prev, s.ends.next = &s.ends, &s.ends
}

// use is the entry of k, as the most recently used one from now on.
func (s *shard[K, V]) use(k K) (*entry[K, V], bool) {
	e, found := s.by[k]
	if found && s.ends.next != e {
		e.unlink()
		s.front(e)
	}
	return e, found
}

// join is the load of k that is under way, or a new one for the caller to
// start. One that began longer ago than fresh says too little of now.
func (s *shard[K, V]) join(k K, now time.Time, fresh time.Duration) (f *flight[V], began bool) {
	if f, found := s.flights[k]; found && now.Sub(f.began) < fresh {
		return f, false
	}
	f = &flight[V]{began: now, done: make(chan struct{})}
	s.flights[k] = f
	return f, true
}

func (s *shard[K, V]) put(k K, v V, read time.Duration) {
	e, found := s.use(k)
	if !found {
		for len(s.by) >= s.max {
			s.remove(s.ends.prev.key)
		}
		e = &entry[K, V]{key: k}
		s.by[k] = e
		s.front(e)
	}
	e.value, e.read, e.again = v, read, false
}

func (s *shard[K, V]) drop(k K) {
	s.remove(k)
	s.outdate(k)
}

// outdate has the load of k that is under way remembered by nobody.
func (s *shard[K, V]) outdate(k K) {
	if f, flying := s.flights[k]; flying {
		f.dropped = true
		delete(s.flights, k)
	}
}

func (s *shard[K, V]) remove(k K) {
	if e, found := s.by[k]; found {
		e.unlink()
		delete(s.by, k)
	}
}

func (s *shard[K, V]) front(e *entry[K, V]) {
	e.prev, e.next = &s.ends, s.ends.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry[K, V]) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
