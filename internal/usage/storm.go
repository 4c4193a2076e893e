package usage

import (
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// shownInASecond is how many refusals of one key by one limit are events of
// their own in one second. What follows in that second is counted in one event.
const shownInASecond = 20

// straggle is by how many seconds a refusal may come late; what is earlier still
// was decided by a clock that was set back, whose seconds count anew.
const straggle = 5

// storms counts refusals by key, limit and second. It is safe for concurrent
// use, and holds only what was refused in the last second.
type storms struct {
	mu   sync.Mutex
	open map[storm]*stormSecond
}

// storm is what refuses whom. The fields beside key and limit are those that
// rollups tell apart, so that a counted event sums up like those it stands for.
type storm struct {
	tenant, key, limit, customer, plan uuid.UUID
	outcome                            Outcome
	code, model                        string
	test                               bool
}

type stormSecond struct {
	second int64
	seen   int
	rest   *Event // what is counted; nil while every one has an event
}

func stormOf(e *Event) storm {
	s := storm{tenant: e.Tenant, key: e.Key, customer: e.Customer, plan: e.PlanVersion, outcome: e.Outcome, code: e.Refusal.Code, model: e.ModelAsked, test: e.Test}
	if len(e.Refusal.Limits) > 0 {
		s.limit = e.Refusal.Limits[0].Limit.ID
	}
	return s
}

// take says which events to write now that e was refused: e itself, or none
// while it is only counted, and the counted event of an earlier second, which is
// over. The event that is returned is no longer changed.
func (s *storms) take(e *Event) (write []*Event) {
	k, second := stormOf(e), e.StartedAt.Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.open[k]
	if at == nil || at.second < second || at.second > second+straggle {
		if at != nil && at.rest != nil {
			write = append(write, at.rest)
		}
		at = &stormSecond{second: second}
		if s.open == nil {
			s.open = map[storm]*stormSecond{}
		}
		s.open[k] = at
	}
	at.seen++
	switch {
	case at.seen <= shownInASecond || at.second > second: // a straggler of a second that was written
		return append(write, e)
	case at.rest == nil:
		at.rest = e
	default:
		at.rest.standFor(e)
	}
	return write
}

// standFor counts another refusal in the event. Of what they do not share it
// states nothing.
func (e *Event) standFor(o *Event) {
	e.Refused += o.Refused
	if o.EndedAt.After(e.EndedAt) {
		e.EndedAt = o.EndedAt
	}
	if o.StartedAt.Before(e.StartedAt) {
		e.StartedAt = o.StartedAt
	}
	if e.EndUser != o.EndUser {
		e.EndUser = ""
	}
	if !maps.Equal(e.Tags, o.Tags) {
		e.Tags = nil
	}
}

// over are the counted events of seconds that have passed; with all, also those
// of the second that runs.
func (s *storms) over(now time.Time, all bool) (write []*Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, at := range s.open {
		if now := now.Unix(); !all && at.second >= now && at.second <= now+straggle {
			continue
		}
		if at.rest != nil {
			write = append(write, at.rest)
		}
		delete(s.open, k)
	}
	return write
}

// refuse records that a call was not admitted.
func (m *Meter) refuse(e *Event) {
	for _, e := range m.storms.take(e) {
		m.finish(e)
	}
}

// settleStorms writes what was counted in seconds that have passed.
func (m *Meter) settleStorms(all bool) {
	for _, e := range m.storms.over(m.now(), all) {
		m.finish(e)
	}
}
