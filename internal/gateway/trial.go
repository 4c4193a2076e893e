package gateway

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/tenants"
)

// How often a call finds out whether a key is well again before its bench is
// over: where every key cools by a guess of ours, so that one that was wrong is
// no outage; and where some have said until when, once a guess is half over.
const (
	trialEvery = time.Second
	probeEvery = time.Minute
)

// trial is the route that this call tries although its key cools, where all of
// them do, and whether its failure begins the bench anew. Nobody's call is
// risked while a key is well, and none on what a provider has stated.
func (s *Server) trial(ctx context.Context, tenant uuid.UUID, all []candidate) (c candidate, probe, ok bool) {
	now, every := s.Now(), trialEvery
	var of tenants.KeyHealth
	pick := func(halfOver bool) (found int) {
		for _, x := range all {
			h, guessed := s.health.of(x.Key, x.model).Guessed(x.model, now)
			if !guessed || halfOver && !isHalfOver(h, now) {
				continue
			}
			if found++; of.Key == uuid.Nil || h.Bench.Until.Before(of.Bench.Until) {
				c, of = x, h
			}
		}
		return found
	}
	if n := pick(false); n < len(all) {
		every, of = probeEvery, tenants.KeyHealth{}
		pick(true)
	}
	if of.Key == uuid.Nil || now.Sub(of.Last) < trialEvery || !s.health.tries(healthID{of.Key, of.Model}, now) {
		return c, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	claimed, err := s.Tenants.ClaimTrial(ctx, tenant, of.Key, of.Model, now, every)
	if err != nil {
		s.Log.WarnContext(ctx, "no call tries a key that cools", "error", err.Error())
	}
	return c, isHalfOver(of, now), claimed
}

func isHalfOver(h tenants.KeyHealth, now time.Time) bool {
	at, ok := h.Bench.ProbeAt()
	return ok && !now.Before(at)
}

// tries tells whether this process may ask again for a trial: once a second.
func (h *health) tries(at healthID, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.tried[at]) < trialEvery {
		return false
	}
	if len(h.tried) >= mostNewer {
		clear(h.tried)
	}
	h.tried[at] = now
	return true
}
