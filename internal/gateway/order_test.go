package gateway

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func ordering(now time.Time) *Server {
	return New(Deps{Now: func() time.Time { return now }})
}

// on are candidates for a model "m", one for each line that is described.
func on(n int, describe func(i int, c *candidate)) (list []candidate) {
	for i := range n {
		c := candidate{Route: &tenants.Route{Key: tenants.ProviderKey{ID: uuid.New()}, Endpoint: catalogue.Endpoint{BaseURL: fmt.Sprintf("https://%d.example", i)}}, model: "m", rank: 1, share: 1, group: i}
		describe(i, &c)
		list = append(list, c)
	}
	return list
}

func chatting(t *testing.T, messages string) *call {
	t.Helper()
	o, err := jsonbody.ParseObject([]byte(`{"messages": ` + messages + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return &call{form: formAt(wire.Chat), body: o}
}

// firsts counts how often each candidate is first.
func firsts(t *testing.T, s *Server, list []candidate, times int, sticky bool, call func(i int) *call) map[uuid.UUID]int {
	t.Helper()
	out := map[uuid.UUID]int{}
	for i := range times {
		ordered := append([]candidate(nil), list...)
		s.order(call(i), ordered, sticky)
		out[ordered[0].Key.ID]++
	}
	return out
}

func TestLinesOfOnePriorityShareCallsByWeight(t *testing.T) {
	weights := []int{6, 3, 1}
	list := on(4, func(i int, c *candidate) {
		if i == 3 {
			c.rank = 2
			return
		}
		c.share = weights[i]
	})
	const calls = 10_000
	got := firsts(t, ordering(time.Now()), list, calls, false, func(int) *call { return &call{} })
	for i, w := range weights {
		if n := got[list[i].Key.ID]; n < calls*w/10-400 || n > calls*w/10+400 {
			t.Errorf("weight %d of 10 got %d of %d calls", w, n, calls)
		}
	}
	if n := got[list[3].Key.ID]; n != 0 {
		t.Errorf("the second priority was first %d times", n)
	}
}

func TestAConversationStaysWithOneKeyAndConversationsSpread(t *testing.T) {
	s := ordering(time.Now())
	list := on(4, func(_ int, c *candidate) { c.group = 0 })
	turns := []string{
		`[{"role":"system","content":"Be brief"},{"role":"user","content":"Hello %d"}]`,
		`[{"role":"system","content":"Be brief"},{"role":"user","content":"Hello %d"},{"role":"assistant","content":"Hi"},{"role":"user","content":"More"}]`,
	}
	spread := map[uuid.UUID]int{}
	for c := range 400 {
		got := firsts(t, s, list, 2, true, func(i int) *call { return chatting(t, fmt.Sprintf(turns[i], c)) })
		if len(got) != 1 {
			t.Fatalf("conversation %d was served by %d keys", c, len(got))
		}
		for key := range got {
			spread[key]++
		}
	}
	for _, c := range list {
		if n := spread[c.Key.ID]; n < 50 || n > 150 {
			t.Errorf("a key of four got %d of 400 conversations", n)
		}
	}
	named := firsts(t, s, list, 50, false, func(int) *call { return &call{conversation: "order 66"} })
	if len(named) != 1 {
		t.Errorf("a conversation that is named was served by %d keys", len(named))
	}
}

func TestTheKeyWithMostLeftIsFirst(t *testing.T) {
	now := time.Now()
	s := ordering(now)
	list := on(3, func(_ int, c *candidate) { c.group = 0 })
	for i, left := range []int64{10, 60, 30} {
		s.headroom.note(list[i].Key.ID, "m", []limits.State{
			{Limit: limits.Limit{Scope: limits.Scope{Kind: limits.ScopeProviderKey}, Amount: 100}, Remaining: left, Full: time.Minute},
			{Limit: limits.Limit{Scope: limits.Scope{Kind: limits.ScopeCustomer}, Amount: 100}, Remaining: 1, Full: time.Minute},
		}, now)
	}
	if got := firsts(t, s, list, 20, false, func(int) *call { return &call{} }); got[list[1].Key.ID] != 20 {
		t.Errorf("the fullest key was first %d times of 20", got[list[1].Key.ID])
	}
}

func TestHeadroomComesBackAsItsLimitRefills(t *testing.T) {
	now := time.Now()
	h, key := newHeadroom(), uuid.New()
	note := func(window time.Time) {
		h.note(key, "m", []limits.State{{Limit: limits.Limit{Scope: limits.Scope{Kind: limits.ScopePool}, Amount: 100}, Remaining: 20, Full: time.Minute, WindowStart: window}}, now)
	}
	note(time.Time{})
	for after, want := range map[time.Duration]float64{0: 0.2, 30 * time.Second: 0.6, time.Minute: 1, time.Hour: 1} {
		if got := h.of(key, "m", now.Add(after)); got < want-0.001 || got > want+0.001 {
			t.Errorf("after %s %.3f is left, want %.3f", after, got, want)
		}
	}
	note(now.Add(-time.Hour)) // a calendar's window
	if half, full := h.of(key, "m", now.Add(30*time.Second)), h.of(key, "m", now.Add(time.Minute)); half != 0.2 || full != 1 {
		t.Errorf("of a window %.2f is left within it, %.2f after it", half, full)
	}
}

func TestWhatFailsMuchMoreThanOthersIsLast(t *testing.T) {
	now := time.Now()
	s := ordering(now)
	list := on(3, func(_ int, c *candidate) { c.group = 0 })
	for range 6 {
		s.outliers.note(list[0].at(), true, now)
	}
	s.outliers.note(list[1].at(), true, now) // once is nothing
	got := firsts(t, s, list, 60, false, func(int) *call { return &call{} })
	if got[list[0].Key.ID] != 0 || got[list[1].Key.ID] == 0 {
		t.Errorf("the one that fails was first %d times, the one that failed once %d", got[list[0].Key.ID], got[list[1].Key.ID])
	}
	for range 20 {
		s.outliers.note(list[0].at(), false, now)
	}
	if got := firsts(t, s, list, 60, false, func(int) *call { return &call{} }); got[list[0].Key.ID] == 0 {
		t.Error("one that serves again stays last")
	}
	for _, c := range list {
		for range 30 {
			s.outliers.note(c.at(), true, now)
		}
	}
	if got := firsts(t, s, list, 90, false, func(int) *call { return &call{} }); len(got) != 3 {
		t.Errorf("where all fail, %d of 3 are tried first", len(got))
	}
}

func TestOfTenCallsOneMayBeTriedAgain(t *testing.T) {
	b, tenant, customer, now := newBudgets(), uuid.New(), uuid.New(), time.Now()
	spent := 0
	for range 1000 {
		b.called(customer)
		if b.spend(tenant, customer, now) {
			spent++
		}
	}
	if spent < 100 || spent > 106 {
		t.Errorf("%d retries of 1,000 calls", spent)
	}
	for b.spend(tenant, customer, now) {
		t.Error("there is more than was saved")
	}
	if !b.spend(tenant, customer, now.Add(retryEvery)) || !b.spend(uuid.New(), uuid.New(), now) {
		t.Error("who calls rarely has no retry")
	}
}

func TestADrawIsAsEvenAsItsHash(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	below := 0
	for range 10_000 {
		if drawn(hashed("", random.Uint64(), 0, uuid.Nil), 1) < 0.6931 { // the median of an exponential draw
			below++
		}
	}
	if below < 4800 || below > 5200 {
		t.Errorf("seed %d: %d of 10,000 draws are below the median", seed, below)
	}
}

// TestFailuresOfOneTenantMoveNoOther, though both call one address.
func TestFailuresOfOneTenantMoveNoOther(t *testing.T) {
	now := time.Now()
	s := ordering(now)
	mine, theirs := uuid.New(), uuid.New()
	list := on(2, func(i int, c *candidate) { c.Endpoint.Tenant, c.rank = theirs, i+1 })
	first := list[0].Key.ID
	bad := on(1, func(_ int, c *candidate) { c.Endpoint.Tenant = mine })[0]
	for range 6 { // such as six batches of vectors beyond 64 MB
		s.outliers.note(bad.at(), true, now)
	}
	s.order(&call{}, list, false)
	if list[0].Key.ID != first {
		t.Error("six failures of one tenant turn the priorities of another's alias around")
	}
}

// TestALongConversationIsKeptByAShortKey: it is read once, and copied never,
// however many keys may serve it.
func TestALongConversationIsKeptByAShortKey(t *testing.T) {
	const size = 4 << 20
	s := ordering(time.Now())
	list := on(50, func(int, *candidate) {})
	for name, messages := range map[string]string{
		"one word":   `[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]`,
		"many turns": `[` + strings.Repeat(`{"role":"assistant","content":"`+strings.Repeat("x", 1000)+`"},`, size/1000) + `{"role":"user","content":"hi"}]`,
	} {
		c := chatting(t, messages)
		if n := len(c.opening()); n == 0 || n > 64 {
			t.Errorf("%s: the key of %d bytes has %d", name, len(messages), n)
		}
		if took := allocated(func() { s.order(c, list, true) }); took > size/2 {
			t.Errorf("%s: the order of 50 keys takes %d KiB", name, took>>10)
		}
	}
}

// allocated is how many bytes f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkALongConversationFindsItsKey(b *testing.B) {
	s := ordering(time.Now())
	list := on(50, func(int, *candidate) {})
	o, err := jsonbody.ParseObject([]byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 16<<20) + `"}]}`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.order(&call{form: formAt(wire.Chat), body: o}, list, true)
	}
}
