package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"weir/internal/fault"
)

// heldFor is how long a reservation lives by itself; a call that runs on extends
// it every beat, so that one whose process died is free again soon.
const (
	heldFor = 2 * time.Minute
	beatAt  = 30 * time.Second
)

// beat keeps the reservation of a running call alive, and ends the call of a
// tenant that is suspended, until the returned stop.
func (s *Server) beat(x *exchange) (stop func()) {
	b := &pulse{s: s, x: x, extend: s.Now().Add(beatAt)}
	b.timer.Store(time.AfterFunc(s.Timeouts.Look, b.look))
	return b.stop
}

// pulse is what keeps one call's reservation alive.
type pulse struct {
	s      *Server
	x      *exchange
	extend time.Time // when the next beat is due
	timer  atomic.Pointer[time.Timer]
	over   atomic.Bool
}

// look finds out whether the call may go on. The directory remembers that.
func (b *pulse) look() {
	ctx, cancel := context.WithTimeout(context.Background(), b.s.Timeouts.Look)
	defer cancel()
	if gone, err := b.s.Directory.Suspended(ctx, b.x.k.who.Tenant.ID); err == nil && gone {
		b.x.stop(errSuspended)
	}
	if now := b.s.Now(); !now.Before(b.extend) {
		b.extend = now.Add(beatAt)
		b.beat()
	}
	if !b.over.Load() {
		b.timer.Store(time.AfterFunc(b.s.Timeouts.Look, b.look))
	}
}

func (b *pulse) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), beatAt)
	defer cancel()
	_, err := b.s.Meter.Extend(ctx, b.x.k.who.Tenant.ID, b.x.reservation, b.s.Now().Add(heldFor))
	if err != nil && !b.over.Load() && !fault.Is(err, fault.Conflict) {
		b.s.Log.WarnContext(ctx, "reservation not extended", "request_id", b.x.k.requestID(), "error", err)
	}
}

func (b *pulse) stop() {
	b.over.Store(true)
	b.timer.Load().Stop()
}
