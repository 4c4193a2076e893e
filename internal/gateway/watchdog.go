package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
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
	silent *time.Timer
	total  *time.Timer
	mu     sync.Mutex
	drain  *time.Timer
	over   bool
}

func watch(cancel context.CancelCauseFunc, t Timeouts) *watchdog {
	return &watchdog{
		cancel: cancel, t: t,
		silent: time.AfterFunc(t.FirstByte, func() { cancel(&timeoutError{"first byte or idle"}) }),
		total:  time.AfterFunc(t.Total, func() { cancel(&timeoutError{"total"}) }),
	}
}

// progress notes that something arrived.
func (w *watchdog) progress() { w.silent.Reset(w.t.Idle) }

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
	w.silent.Stop()
	w.total.Stop()
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
