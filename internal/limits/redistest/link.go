package redistest

import (
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a way to a Server that can be made slow, or swallow what it is given.
// It ends with its test.
type Link struct {
	t     testing.TB
	path  string
	to    string
	delay atomic.Int64 // ns, each way

	mu    sync.Mutex
	hole  chan struct{} // nil: bytes pass; closed when they do again
	conns map[net.Conn]bool
}

var links atomic.Int64

// Link opens one more way to the server.
func (s *Server) Link() *Link {
	s.t.Helper()
	l := &Link{t: s.t, path: filepath.Join(s.dir, "link"+strconv.FormatInt(links.Add(1), 10)), to: s.Socket(), conns: map[net.Conn]bool{}}
	var config net.ListenConfig
	listener, err := config.Listen(s.t.Context(), "unix", l.path)
	if err != nil {
		s.t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { l.serve(listener, &serving) })
	s.t.Cleanup(func() {
		_ = listener.Close()
		l.Swallow(false)
		l.Cut()
		serving.Wait()
	})
	return l
}

// URL is where it listens, as REDIS_URL states it.
func (l *Link) URL() string { return "unix://" + l.path }

// Delay makes every byte so late, each way.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

// Swallow keeps what it is given to itself, until it is called off.
func (l *Link) Swallow(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && l.hole == nil:
		l.hole = make(chan struct{})
	case !on && l.hole != nil:
		close(l.hole)
		l.hole = nil
	}
}

// Cut ends the connections that there are.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *Link) passable() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hole
}

func (l *Link) keep(c net.Conn, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		l.conns[c] = true
	} else {
		delete(l.conns, c)
	}
}

func (l *Link) serve(listener net.Listener, serving *sync.WaitGroup) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() { l.pass(near) })
	}
}

func (l *Link) pass(near net.Conn) {
	defer near.Close()
	var dial net.Dialer
	far, err := dial.DialContext(l.t.Context(), "unix", l.to)
	if err != nil {
		return
	}
	defer far.Close()
	for _, c := range []net.Conn{near, far} {
		l.keep(c, true)
		defer l.keep(c, false)
	}
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			l.carry(way[0], way[1])
			_, _ = near.Close(), far.Close()
		})
	}
	ways.Wait()
}

type piece struct {
	bytes []byte
	due   time.Time
}

// carry takes bytes from one end to the other, as late as the link is.
func (l *Link) carry(from, to net.Conn) {
	pieces := make(chan piece, 1024)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{b[:n], time.Now().Add(time.Duration(l.delay.Load()))}
			}
			if err != nil {
				return
			}
		}
	})
	var failed error
	for p := range pieces {
		if failed != nil {
			continue
		}
		<-time.After(time.Until(p.due))
		if hole := l.passable(); hole != nil {
			<-hole
		}
		if _, failed = to.Write(p.bytes); failed != nil {
			failed = errors.Join(failed, from.Close())
		}
	}
	reading.Wait()
}
