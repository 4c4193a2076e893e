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

// beat keeps the reservation of a running call alive until the returned stop.
func (s *Server) beat(x *exchange) (stop func()) {
	b := &pulse{s: s, x: x}
	b.timer.Store(time.AfterFunc(beatAt, b.beat))
	return b.stop
}

// pulse is what keeps one call's reservation alive.
type pulse struct {
	s     *Server
	x     *exchange
	timer atomic.Pointer[time.Timer]
	over  atomic.Bool
}

func (b *pulse) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), beatAt)
	defer cancel()
	_, err := b.s.Meter.Extend(ctx, b.x.k.who.Tenant.ID, b.x.reservation, b.s.Now().Add(heldFor))
	if err != nil && !b.over.Load() && !fault.Is(err, fault.Conflict) {
		b.s.Log.WarnContext(ctx, "reservation not extended", "request_id", b.x.k.requestID(), "error", err)
	}
	if !b.over.Load() {
		b.timer.Store(time.AfterFunc(beatAt, b.beat))
	}
}

func (b *pulse) stop() {
	b.over.Store(true)
	b.timer.Load().Stop()
}
