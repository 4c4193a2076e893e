package faults

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/test/stack"
)

// check holds what is in the books against what the clients saw, against what
// reached the provider, and against themselves.
func check(t *testing.T, s *stack.Stack, l *load, up *upstreamtest.Upstream) {
	t.Helper()
	events := read(t, s, l.world)
	reached := map[string]bool{}
	for _, c := range up.Calls() {
		reached[userOf(c)] = true
	}
	seen := map[string]bool{}
	tally := map[string]int{}
	for _, o := range l.ledger.ops {
		seen[o.user] = true
		tally[o.check(t, events[o.user], reached[o.user])]++
	}
	for user := range events {
		if !seen[user] {
			t.Errorf("the books have a call that nobody made: %s", user)
		}
	}
	t.Logf("%d calls: %v", len(l.ledger.ops), tally)
	for _, way := range []string{"exact", "cut, charged to its checkpoint", "ran out", "corrected"} {
		if tally[way] == 0 {
			t.Errorf("no call went this way: %s", way)
		}
	}
	booksBalance(t, s, l.world)
	nothingIsHeld(t, s, l.world)
}

// event is a row of the books.
type event struct {
	ID                                   string
	User, Outcome                        string
	Requests                             int64
	Input, Cached, Write, Out, Reasoning int64
	Estimated                            string
	EstimateIn, EstimateOut              int64
	Charge                               string
	Corrects                             bool
}

func (e event) tokens() limits.Tokens {
	return limits.Tokens{Input: e.Input, CachedInput: e.Cached, CacheWrite: e.Write, Output: e.Out, Reasoning: e.Reasoning}
}

func tenantUUID(t *testing.T, w stack.World) string {
	t.Helper()
	u, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}

// read is every event of the tenant, by the call's name.
func read(t *testing.T, s *stack.Stack, w stack.World) map[string][]event {
	t.Helper()
	out := map[string][]event{}
	for _, e := range stack.Rows[event](t, s, `
		select event_id::text, coalesce(end_user, ''), outcome, requests, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
		       estimated, coalesce((detail #>> '{estimate,tokens,input_tokens}')::bigint, 0), coalesce((detail #>> '{estimate,tokens,output_tokens}')::bigint, 0),
		       charge_pico::text, corrects is not null
		from usage_events where tenant_id = $1
		order by corrects nulls first`, tenantUUID(t, w)) {
		out[e.User] = append(out[e.User], e)
	}
	return out
}

// check compares one call with its events, and says which way it went.
func (o *op) check(t *testing.T, events []event, reachedProvider bool) string {
	t.Helper()
	n := len(events)
	wrong := func(why string) string {
		t.Errorf("%s: %s: cut %v, client saw %+v, books have %+v", o, why, o.cut, o.seen, events)
		return "wrong"
	}
	switch {
	case o.failed:
		return "answered wrongly"
	case n == 0 && o.cut && !reachedProvider && o.reservation == "":
		return "cut before its admission"
	case n == 0:
		return wrong("it is not in the books")
	case n > 1 && !o.late || n > 2:
		return wrong("it is in the books more than once")
	case o.late:
		return o.checkLate(events, wrong)
	case o.kind == "abandon" || o.cut && o.kind != "chat" && o.kind != "stream":
		return o.checkEstimate(events[0], wrong)
	case !o.cut:
		return o.checkExact(events[0], wrong)
	case events[0].Outcome == "ok":
		return o.checkUnseen(events[0], wrong)
	}
	return o.checkCut(events[0], wrong)
}

// checkExact: a call whose end the client saw is what the client saw.
func (o *op) checkExact(e event, wrong func(string) string) string {
	outcome, requests := "ok", int64(1)
	if o.kind == "cancel" {
		outcome, requests = "aborted", 0
	}
	switch {
	case e.Outcome != outcome || e.Requests != requests || e.Estimated != "" || o.seen == nil || e.tokens() != *o.seen:
		return wrong("it is not what the client saw")
	case e.Charge != price(e):
		return wrong("it costs " + e.Charge + ", not " + price(e))
	}
	return "exact"
}

// price is the charge by the plan's price lines, in pico-units. A class without
// a line of its own costs what its whole costs.
func price(e event) string {
	return fmt.Sprint((e.Input+e.Cached)*2_500_000 + (e.Out+e.Reasoning)*10_000_000 + e.Requests*3)
}

// checkUnseen: a call that had ended, but whose answer was lost, is exact too.
func (o *op) checkUnseen(e event, wrong func(string) string) string {
	words := int64(o.words)
	want := limits.Tokens{Input: promptTokens - words%5, CachedInput: words % 5, Output: words - words%3, Reasoning: words % 3}
	if e.Requests != 1 || e.Estimated != "" || e.tokens() != want || e.Charge != price(e) {
		return wrong("it had ended, but not like this")
	}
	return "ended, answer lost"
}

// checkCut: a call that died with its process is charged its request, its prompt
// as estimated, and what had been written down of its stream.
func (o *op) checkCut(e event, wrong func(string) string) string {
	switch {
	case e.Outcome != "expired" || e.Requests != 1 || e.Estimated != "expired":
		return wrong("a cut call has expired")
	case e.Input != e.EstimateIn || e.EstimateIn == 0 || e.Cached+e.Write+e.Reasoning != 0:
		return wrong("a cut call is charged its prompt")
	case e.Out > int64(o.words) || e.Out > 0 && o.kind != "stream":
		return wrong("a cut call is charged no more than what was streamed")
	case e.Charge != price(e):
		return wrong("it costs " + e.Charge + ", not " + price(e))
	case e.Out > 0:
		return "cut, charged to its checkpoint"
	}
	return "cut, charged its prompt"
}

// checkEstimate: a reservation that nobody ended keeps its estimate charged to
// the limits, and is billed nothing.
func (o *op) checkEstimate(e event, wrong func(string) string) string {
	if e.Outcome != "expired" || e.Requests != 1 || e.tokens() != (limits.Tokens{Input: promptTokens, Output: maxOutput}) || e.Charge != "0" {
		return wrong("a reservation that ran out keeps its estimate, unbilled")
	}
	return "ran out"
}

// checkLate: what was settled after its expiry is corrected once, by signed
// differences, to what it really was.
func (o *op) checkLate(events []event, wrong func(string) string) string {
	if len(events) != 2 || events[0].Corrects || !events[1].Corrects {
		return wrong("a late settlement is a second event, the correction")
	}
	first, second := events[0], events[1]
	if o.checkEstimate(first, wrong) != "ran out" {
		return "wrong"
	}
	sum := event{Requests: first.Requests + second.Requests, Input: first.Input + second.Input, Out: first.Out + second.Out}
	requests := int64(1)
	if o.kind == "cancel" {
		requests = 0
	}
	if sum.Requests != requests || sum.Input != o.seen.Input || sum.Out != o.seen.Output || second.Charge != price(sum) {
		return wrong("both together are not what was settled")
	}
	return "corrected"
}

// quiet waits until no call is open and every event that was given a number is
// in the books.
func quiet(t *testing.T, s *stack.Stack) {
	t.Helper()
	since := time.Now()
	stack.Eventually(t, 30*time.Second, func() string {
		type state struct {
			Seen      bool
			Open      bool
			Committed bool
		}
		got := stack.Rows[state](t, s, `
			select i.seen_at > $1, i.oldest_open is not null, not exists (
				select from unnest(i.numbers) with ordinality as n (last, shard)
				left join usage_marks m on m.instance_id = i.instance_id and m.shard = n.shard - 1
				where n.last > 0 and m.committed is distinct from int8multirange(int8range(1, n.last, '[]')))
			from instances i`, since)
		if len(got) != 1 || got[0] != (state{true, false, true}) {
			return fmt.Sprintf("not quiet: %+v", got)
		}
		return ""
	})
}

// spoolIsClosed stops everything and reads what the spool has: nothing open,
// nothing damaged, and no event that the books have not.
func spoolIsClosed(t *testing.T, s *stack.Stack) {
	t.Helper()
	known := map[string]bool{}
	for _, event := range stack.Rows[string](t, s, `select event_id::text from usage_events`) {
		known[event] = true
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range s.Log.Complaints() {
		t.Errorf("the stack printed: %s", line)
	}
	spool, rec, err := usage.OpenSpool(s.Dir+"/spool", usage.SpoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := spool.Close(nil); err != nil {
		t.Error(err)
	}
	if !rec.Clean || len(rec.Open) > 0 || len(rec.Damage) > 0 {
		t.Errorf("the spool: clean %v, %d calls open, damage %v", rec.Clean, len(rec.Open), rec.Damage)
	}
	twice := map[string]bool{}
	for _, e := range rec.Tail {
		if name := e.ID.String(); twice[name] {
			t.Errorf("the spool has the event %s twice", name)
		} else if twice[name] = true; !known[name] {
			t.Errorf("the spool has the event %s, the books have not", name)
		}
	}
}
