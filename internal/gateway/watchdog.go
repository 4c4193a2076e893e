package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// timeoutError says which ceiling a provider ran into.
type timeoutError struct{ what string }

func (e *timeoutError) Error() string { return "upstream " + e.what + " timeout" }

// Why an exchange was cut that is neither the provider's fault nor a timeout.
var (
	errClientGone = errors.New("the client left")
	errHalted     = errors.New("this server stops")
	errSuspended  = errors.New("the tenant is suspended")
)

// watchdog cancels an exchange whose provider is silent for too long, that
// takes too long in all, or whose client left a while ago.
type watchdog struct {
	cancel context.CancelCauseFunc
	t      Timeouts
	began  time.Time
	silent atomic.Int64 // the end of its patience with silence, since it began
	mu     sync.Mutex
	timer  *time.Timer // runs out no later than that, and not at every arrival anew
	drain  *time.Timer
	over   bool
}

func watch(cancel context.CancelCauseFunc, t Timeouts) *watchdog {
	w := &watchdog{cancel: cancel, t: t, began: time.Now()}
	w.silent.Store(int64(t.FirstByte))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(min(t.FirstByte, t.Idle, t.Total), w.look)
	return w
}

// progress notes that something arrived.
func (w *watchdog) progress() { w.silent.Store(int64(time.Since(w.began) + w.t.Idle)) }

// look ends the exchange if it is time, or looks again when it may be.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, silent := time.Since(w.began), time.Duration(w.silent.Load())
	switch {
	case w.over:
	case now >= w.t.Total:
		w.cancel(&timeoutError{"total"})
	case now >= silent:
		w.cancel(&timeoutError{"first byte or idle"})
	default:
		w.timer.Reset(min(silent, now+w.t.Idle, w.t.Total) - now)
	}
}

// clientLeft lets the exchange go on for a bounded while.
func (w *watchdog) clientLeft() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && w.drain == nil {
		w.drain = time.AfterFunc(w.t.Drain, func() { w.cancel(errClientGone) })
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	if w.drain != nil {
		w.drain.Stop()
	}
}

// errTooMuch ends an answer in pieces that is longer than any.
var errTooMuch = errors.New("the answer is longer than any that its form has")

// reader notes every arrival. What is longer than most bytes ends with errTooMuch.
func (w *watchdog) reader(r io.Reader, most int64) io.Reader { return &watched{r, w, most} }

type watched struct {
	r    io.Reader
	w    *watchdog
	left int64
}

func (x *watched) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	if n > 0 {
		x.w.progress()
	}
	if x.left -= int64(n); x.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// newBody is a request body whose length is known, so that nothing is sent in
// chunks.
func newBody(b []byte) io.Reader { return bytes.NewReader(b) }
