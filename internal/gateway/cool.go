package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/verdict"
)

// health is what this process reported of provider keys until the directory,
// which is a second old at the most, has it too: a call that is made right after
// another's failure keeps away already. It is safe for concurrent use.
type health struct {
	mu      sync.Mutex
	newer   map[healthID]tenants.KeyHealth
	learned map[healthID]time.Time // when something was last stored
	busy    map[healthID]bool      // a success is being stored
	failing map[healthID]bool      // models, by tenant, that failed last
	tried   map[healthID]time.Time // when a call last asked to try what cools
}

type healthID struct {
	key   uuid.UUID
	model string
}

// mostNewer bounds what waits for the directory; without it a call more may go
// to a key that cools.
const mostNewer = 10_000

func newHealth() *health {
	return &health{newer: map[healthID]tenants.KeyHealth{}, learned: map[healthID]time.Time{}, busy: map[healthID]bool{}, failing: map[healthID]bool{}, tried: map[healthID]time.Time{}}
}

func (h *health) note(list []tenants.KeyHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range list {
		at := healthID{k.Key, k.Model}
		if known, ok := h.newer[at]; ok && known.Version >= k.Version {
			continue
		}
		evict(h.newer)
		h.newer[at] = k
	}
}

// of is a key with whatever is known of it and a model that is newer.
func (h *health) of(k tenants.ProviderKey, model string) tenants.ProviderKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.newer) == 0 {
		return k
	}
	for _, m := range []string{tenants.EveryModel, model} {
		at := healthID{k.ID, m}
		newer, found := h.newer[at]
		if !found {
			continue
		}
		known := k.HealthOf(m)
		if known.Version >= newer.Version {
			delete(h.newer, at)
			continue
		}
		k.Health = append([]tenants.KeyHealth{newer}, without(k.Health, m)...)
	}
	return k
}

// fails notes that a model of a tenant failed, or was served, last, and returns
// what it was before.
func (h *health) fails(tenant uuid.UUID, model string, now bool) (before bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := healthID{tenant, model}
	before = h.failing[at]
	if delete(h.failing, at); now {
		evict(h.failing)
		h.failing[at] = true
	}
	return before
}

func without(list []tenants.KeyHealth, model string) (out []tenants.KeyHealth) {
	for _, h := range list {
		if h.Model != model {
			out = append(out, h)
		}
	}
	return out
}

// learns tells whether something of a model may be stored again: once a second.
func (h *health) learns(at healthID, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.learned[at]) < time.Second {
		return false
	}
	if len(h.learned) >= mostNewer {
		clear(h.learned)
	}
	h.learned[at] = now
	return true
}

// begin tells whether nobody stores a success of a model already; end must
// follow.
func (h *health) begin(at healthID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[at] {
		return false
	}
	h.busy[at] = true
	return true
}

func (h *health) end(at healthID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, at)
}

// storeWithin is how long a call may take longer for what it shows of a key.
const storeWithin = 2 * time.Second

func (x *exchange) storing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.k.ctx), storeWithin)
}

// failed reports that the provider did not serve the call, with what its answer
// states, before the client is told: a client that comes back at once finds the
// key cooling. body is nil where there is none.
func (x *exchange) failed(status int, header http.Header, body []byte) {
	if x.at.Endpoint.Provider.Practice {
		return
	}
	now := x.s.Now()
	said := readStated(status, header, body, x.at.Vendor.Quirks, now)
	if said.status == http.StatusOK {
		said.status = 0 // an answer that broke off
	}
	f := limits.Failure{
		Sent: x.try.sent, At: now, Status: said.status, Wait: said.wait, Message: said.message, Detail: said.detail,
		Daily: x.daily(said.daily), Zone: x.at.Key.Zone, Local: x.at.Local, Probe: x.probe,
	}
	ctx, cancel := x.storing()
	defer cancel()
	if f.Failing() {
		x.s.outliers.note(x.at.at(), true, now)
		x.s.health.fails(x.k.who.Tenant.ID, x.at.model, true)
	}
	if !x.s.health.of(x.at.Key, x.at.model).Knew(x.at.model, f) {
		changed, err := x.s.Tenants.ReportFailure(ctx, x.k.who.Tenant.ID, x.at.Key.ID, x.at.model, f)
		if err != nil {
			x.s.Log.WarnContext(ctx, "cooldown not stored", "request_id", x.k.requestID(), "error", err.Error())
			changed = x.unstored(f)
		}
		x.s.health.note(changed)
	}
	x.learn(said.limits)
}

// outOfCredit tells a 400 that is about the account and not about the request,
// and reports it.
func (x *exchange) outOfCredit(header http.Header, body []byte) bool {
	said := readStated(x.try.status, header, body, x.at.Vendor.Quirks, x.s.Now())
	if said.message != limits.MessageCredit {
		return false
	}
	x.failed(x.try.status, header, body)
	return true
}

// learns takes what a refusal states of the key's limits, and nothing else of it.
func (x *exchange) learns(status int, header http.Header, body []byte) {
	x.learn(readStated(status, header, body, x.at.Vendor.Quirks, x.s.Now()).limits)
}

// daily is what is known of the day's quota: what the answer says, else what
// the key's limits say.
func (x *exchange) daily(said limits.Daily) limits.Daily {
	if said != limits.DailyUnknown {
		return said
	}
	return x.at.Key.Daily(x.at.model)
}

// unstored is what a failure makes of a key while the database is out, for this
// process alone.
func (x *exchange) unstored(f limits.Failure) []tenants.KeyHealth {
	h := x.s.health.of(x.at.Key, x.at.model).Concerned(x.at.model, f)
	h.Version, h.Health = h.Version+1, h.Failed(f)
	return []tenants.KeyHealth{h}
}

// served reports that the provider served the call, where that changes what is
// known of the key, and learns from its headers.
func (x *exchange) served(header http.Header) {
	if x.at.Endpoint.Provider.Practice {
		return
	}
	now := x.s.Now()
	x.s.outliers.note(x.at.at(), false, now)
	x.learn(readStated(http.StatusOK, header, nil, x.at.Vendor.Quirks, now).limits)
	at := healthID{x.at.Key.ID, x.at.model}
	r := *x.at.Route
	r.Key = x.s.health.of(r.Key, x.at.model)
	failed := x.s.health.fails(x.k.who.Tenant.ID, x.at.model, false)
	if !failed && !r.Marked(x.at.model) || !x.s.health.begin(at) {
		return
	}
	defer x.s.health.end(at)
	ctx, cancel := x.storing()
	defer cancel()
	changed, err := x.s.Tenants.ReportSuccess(ctx, x.k.who.Tenant.ID, r.Key.ID, x.at.model, x.try.sent)
	if err != nil {
		x.s.Log.WarnContext(ctx, "recovery not stored", "request_id", x.k.requestID(), "error", err.Error())
	}
	x.s.health.note(changed)
}

// learn stores what the provider stated of its limits, where that is news.
func (x *exchange) learn(said []limits.Statement) {
	now := x.s.Now()
	changed := limits.Learn(x.at.Key.Learned, x.at.model, said, now.UTC().Truncate(time.Microsecond))
	if len(changed) == 0 || !x.s.health.learns(healthID{x.at.Key.ID, x.at.model}, now) {
		return
	}
	ctx, cancel := x.storing()
	defer cancel()
	if err := x.s.Tenants.Learn(ctx, x.k.who.Tenant.ID, x.at.Key.ID, changed); err != nil {
		x.s.Log.WarnContext(ctx, "limits not learned", "request_id", x.k.requestID(), "error", err.Error())
	}
}

// capacity is the refusal where every provider key of a model cools, or has just
// refused: with the time until the first of them is back.
func (s *Server) capacity(all []candidate, model string) error {
	now := s.Now()
	wait := limits.LongestWait
	for _, r := range all {
		b, cools := s.health.of(r.Key, r.model).Cools(r.model, now)
		switch {
		case !cools:
			wait = 0
		case !b.Until.IsZero():
			wait = min(wait, b.Until.Sub(now))
		}
	}
	wait = max(wait, time.Second)
	return fault.New(fault.Unavailable, "provider_capacity", "Every provider key for "+model+" rests at its provider's own limit right now; this is not a limit of your plan. Try again in "+verdict.Duration(wait)+".").After(wait)
}
