package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// keys are keys of a provider, each with limits of a minute, of a day, and at once.
type keys struct {
	candidates []limits.Candidate
	limits     [][]limits.Limit
}

func newKeys(n int) (k keys) {
	for range n {
		key := id.New()
		var own []limits.Limit
		for _, l := range []limits.Limit{
			{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 2000},
			{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 50_000, Zone: "UTC"},
			{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 50_000_000, Zone: "UTC"},
			{Dimension: limits.DimensionConcurrency, Window: limits.WindowNone, Amount: 10},
		} {
			l.ID, l.Scope = id.New(), limits.Scope{Kind: limits.ScopeProviderKey, ID: key, Name: "key"}
			own = append(own, limits.Default(l))
		}
		k.limits = append(k.limits, own)
		k.candidates = append(k.candidates, limits.Candidate{ProviderKey: key, Model: "gpt-4o", Limits: limits.Compile(own)})
	}
	return k
}

// try is an attempt on a candidate that ended with a status.
func try(c limits.Candidate, status int, tokens limits.Tokens) Attempt {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return Attempt{Provider: "openai", ProviderKey: c.ProviderKey, Model: c.Model, Status: status, StartedAt: at, EndedAt: at, Tokens: tokens}
}

// amounts are charges by ledger.
func amounts(charges []limits.Charge) map[string]int64 {
	sums := map[string]int64{}
	for _, c := range charges {
		sums[c.Ledger] += c.Amount
	}
	return sums
}

func TestACallThatMovedHasOneEventWithEveryAttemptAndWhatEachTook(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c, keys := m.call(false), newKeys(3)
	c.Candidates = keys.candidates[:1]
	d := m.admit(c)
	call := d.Reservation.ID
	counts, forgives := try(keys.candidates[0], 500, limits.Tokens{Input: 30}), try(keys.candidates[1], 429, limits.Tokens{})
	for _, n := range []Next{
		{Ended: counts, Candidates: keys.candidates[1:2]},
		{Ended: forgives, GiveBackRequest: true, Candidates: keys.candidates[2:]},
	} {
		if d, err := m.meter.Move(t.Context(), m.tenant, call, n); err != nil || !d.Admitted || d.Candidate != 0 {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	if m.day() != 500 {
		t.Fatalf("the plan holds %d after two moves", m.day())
	}
	last := try(keys.candidates[2], 200, used)
	_, err := m.meter.Settle(t.Context(), m.tenant, call, Result{Outcome: OK, Tokens: used, ModelServed: last.Model, Attempts: []Attempt{last}})
	must(t, err)
	e := m.stored(c.RequestID)[0]
	if diff := cmp.Diff([]Attempt{counts, forgives, last}, e.Attempts); diff != "" || e.ProviderKey != last.ProviderKey || e.ModelServed != last.Model || e.Tokens != used {
		t.Fatalf("got %+v\n%s", e, diff)
	}
	want := map[string]int64{m.plan[1].Ledger(""): 200}
	for i, took := range [][2]int64{{1, 30}, {0, 0}, {1, 200}} {
		want[keys.limits[i][1].Ledger("")], want[keys.limits[i][2].Ledger("")] = took[0], took[1]
	}
	if diff := cmp.Diff(want, amounts(e.Charges)); diff != "" {
		t.Fatal(diff)
	}
	m.agrees(keys, want)
}

func TestWhereNoProviderKeyFitsTheCallIsOpenUntilItIsSettled(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c, keys := m.call(false), newKeys(2)
	c.Candidates = keys.candidates[:1]
	d := m.admit(c)
	full := keys.candidates[1]
	full.Limits = limits.Compile([]limits.Limit{limits.Default(limits.Limit{ID: id.New(), Scope: keys.limits[1][0].Scope, Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 1})})
	ended := try(keys.candidates[0], 503, limits.Tokens{})
	got, err := m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: ended, Candidates: []limits.Candidate{full}})
	if err != nil || got.Admitted || !got.ProviderFull {
		t.Fatalf("got %+v, %v", got, err)
	}
	_, err = m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: ProviderError})
	must(t, err)
	e := m.stored(c.RequestID)[0]
	if diff := cmp.Diff([]Attempt{ended}, e.Attempts); diff != "" || e.ProviderKey != ended.ProviderKey || e.ModelServed != ended.Model {
		t.Fatalf("got %+v\n%s", e, diff)
	}
	if _, err := m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: ended}); !fault.Is(err, fault.NotFound) {
		t.Fatalf("after its end: %v", err)
	}
}

func TestACallGoesThroughABoundedNumberOfAttempts(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c, keys := m.call(false), newKeys(2)
	c.Candidates = keys.candidates[:1]
	d := m.admit(c)
	n := 0
	for i := 0; ; i++ {
		got, err := m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: try(keys.candidates[i%2], 401, limits.Tokens{}), GiveBackRequest: true, Candidates: keys.candidates[(i+1)%2 : (i+1)%2+1]})
		must(t, err)
		if n++; !got.Admitted {
			break
		}
	}
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: ProviderError})
	must(t, err)
	if got := m.stored(c.RequestID)[0]; n >= mostAttempts || len(got.Attempts) != n {
		t.Fatalf("%d attempts, %d on the event", n, len(got.Attempts))
	}
}

func TestACallThatMovedAndRanOutIsChargedWithItsAttempts(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c, keys := m.call(false), newKeys(2)
	c.Candidates = keys.candidates[:1]
	d := m.admit(c)
	ended := try(keys.candidates[0], 500, limits.Tokens{Input: 30})
	_, err := m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: ended, Candidates: keys.candidates[1:]})
	must(t, err)
	until := m.clock.now().Add(2 * time.Minute)
	if _, err := m.meter.Extend(t.Context(), m.tenant, d.Reservation.ID, until); err != nil {
		t.Fatal(err)
	}
	m.clock.advance(2*time.Minute - time.Millisecond)
	m.meter.Sweep()
	if m.meter.calls[d.Reservation.ID].event != nil {
		t.Fatal("it ran out before its extension did")
	}
	m.clock.advance(time.Millisecond)
	m.meter.Sweep()
	e := m.stored(c.RequestID)[0]
	want := map[string]int64{
		m.plan[1].Ledger(""): 500, keys.limits[0][1].Ledger(""): 1, keys.limits[0][2].Ledger(""): 30,
		keys.limits[1][1].Ledger(""): 1, keys.limits[1][2].Ledger(""): 500,
	}
	if diff := cmp.Diff(want, amounts(e.Charges)); diff != "" || e.Outcome != Expired || e.ProviderKey != keys.candidates[1].ProviderKey || len(e.Attempts) != 1 {
		t.Fatalf("got %+v\n%s", e, diff)
	}
	m.agrees(keys, want)
	_, err = m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: ended})
	if fault.Of(err).Code != "reservation_expired" {
		t.Fatalf("a call that ran out moves: %v", err)
	}
	// The late end corrects both.
	_, err = m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	must(t, err)
	want[m.plan[1].Ledger("")], want[keys.limits[1][2].Ledger("")] = 200, 200
	sums := map[string]int64{}
	for _, e := range m.stored(c.RequestID) {
		for ledger, n := range amounts(e.Charges) {
			sums[ledger] += n
		}
	}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Fatal(diff)
	}
	m.agrees(keys, want)
}

func TestAfterAKillEachProviderKeyIsChargedWithWhatItsAttemptsTook(t *testing.T) {
	t.Parallel()
	for _, copied := range []bool{false, true} {
		m := newMetering(t)
		dir := t.TempDir()
		s, _ := spoolAt(t, dir, SpoolOptions{SegmentBytes: 1 << 10, KeepFor: time.Nanosecond, Now: m.clock.now})
		meter := NewMeter(m.engine, s, m.reports, quiet(t), m.clock.now)
		c, keys := m.call(false), newKeys(2)
		c.Candidates = keys.candidates[:1]
		d, err := meter.Admit(t.Context(), c)
		must(t, err)
		ended := try(keys.candidates[0], 500, limits.Tokens{Input: 30})
		_, err = meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: ended, Candidates: keys.candidates[1:]})
		must(t, err)
		until := m.clock.now().Add(5 * time.Minute)
		_, err = meter.Extend(t.Context(), m.tenant, d.Reservation.ID, until)
		must(t, err)
		if copied {
			before := s.open[d.Reservation.ID].seg
			for range 10 { // the file of its admission is gone
				must(t, s.Leave(admitted(t, s, m.tenant)))
				m.clock.advance(time.Second)
				must(t, s.sweep())
			}
			if s.open[d.Reservation.ID].seg == before {
				t.Fatal("not copied forward")
			}
		}
		crash(s)
		again, rec := spoolAt(t, dir, SpoolOptions{Now: m.clock.now})
		if len(rec.Open) != 1 || !rec.Open[0].Reservation.ExpiresAt.Equal(until) {
			t.Fatalf("recovered %+v", rec.Open)
		}
		list, _, err := CloseOpen(t.Context(), again, rec.Open, nil, m.clock.now())
		must(t, err)
		want := map[string]int64{
			m.plan[1].Ledger(""): 100, keys.limits[0][1].Ledger(""): 1, keys.limits[0][2].Ledger(""): 30,
			keys.limits[1][1].Ledger(""): 1, keys.limits[1][2].Ledger(""): 100,
		}
		if diff := cmp.Diff(want, amounts(list[0].Charges)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func admitted(t *testing.T, s *Spool, tenant uuid.UUID) uuid.UUID {
	t.Helper()
	e := call(tenant, s.o.Now())
	must(t, s.Admit(admission(e)))
	return e.ID
}

// agrees compares what the engine holds of calendar ledgers.
func (m *metering) agrees(keys keys, want map[string]int64) {
	m.t.Helper()
	for _, list := range append(keys.limits, m.plan[1:]) {
		states, err := m.engine.Live(m.t.Context(), m.tenant, list, "", "")
		must(m.t, err)
		for _, s := range states {
			if s.Limit.Window == limits.WindowDay && s.Used+s.Held != want[s.Ledger] {
				m.t.Errorf("the engine has %d of %s, the books %d", s.Used+s.Held, s.Ledger, want[s.Ledger])
			}
			if s.Limit.Dimension == limits.DimensionConcurrency && s.Held != 0 {
				m.t.Errorf("%d slots of %s are held", s.Held, s.Ledger)
			}
		}
	}
}
