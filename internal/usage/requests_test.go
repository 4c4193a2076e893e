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

func TestPagesOfOneInstantSkipAndRepeatNothing(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	at := time.Now().Truncate(time.Millisecond)
	var events []Event
	for range 156 {
		events = append(events, call(tenant, at))
	}
	b.ingest(s.run(t, events...))
	seen := map[uuid.UUID]bool{}
	var pages int
	for q := (RequestFilter{Limit: 40}); ; pages++ {
		page, err := b.reports().Requests(t.Context(), tenant, q)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen[e.ID] = true
		}
		q.After = CursorOf(page[len(page)-1])
	}
	if len(seen) != 156 || pages != 4 {
		t.Fatalf("%d calls on %d pages", len(seen), pages)
	}
}

func TestStoredCallReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	e := call(tenant, time.Now())
	e.Subscription, e.PlanVersion, e.EndUser, e.Tags = id.New(), id.New(), "ann \u00e9", map[string]string{"team": "search"}
	e.Stream, e.SelfReported, e.Estimated, e.Prices, e.Units = true, true, "no usage", []uuid.UUID{id.New()}, 3
	no := refusal(tenant, time.Now())
	no.Refusal = &Refusal{Code: "rate_limit_exceeded", RetryAfter: 1500 * time.Millisecond, Limits: []Refusing{{
		Limit: limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 5, Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: id.New(), Name: "acme"}}, Used: 5, Requested: 10,
	}}}
	fix := call(tenant, e.StartedAt)
	fix.RequestID, fix.Corrects, fix.Outcome, fix.Tokens = e.RequestID, e.ID, Correction, limits.Tokens{Output: -3}
	b.ingest(s.run(t, e, no, fix))
	e.clean()
	e.Instance, e.Shard, e.Number = s.instance, ShardOf(tenant), 1
	got, err := b.reports().EventByID(t.Context(), tenant, e.ID)
	must(t, err)
	if diff := cmp.Diff(e, got, exactMoney); diff != "" {
		t.Fatal(diff)
	}
	got, corrections, err := b.reports().RequestByID(t.Context(), tenant, e.RequestID)
	must(t, err)
	if diff := cmp.Diff(e, got, exactMoney); diff != "" || len(corrections) != 1 || corrections[0].ID != fix.ID {
		t.Fatalf("%s, corrections %v", diff, corrections)
	}
	got, _, err = b.reports().RequestByID(t.Context(), tenant, no.RequestID)
	must(t, err)
	if diff := cmp.Diff(no.Refusal, got.Refusal); diff != "" {
		t.Fatal(diff)
	}
	for _, whose := range []uuid.UUID{id.New(), tenant} {
		for _, of := range []uuid.UUID{e.ID, e.RequestID, uuid.New(), uuid.Max, uuid.Nil} {
			if whose == tenant && (of == e.ID || of == e.RequestID) {
				continue
			}
			_, _, err1 := b.reports().RequestByID(t.Context(), whose, of)
			_, err2 := b.reports().EventByID(t.Context(), whose, of)
			if !fault.Is(err1, fault.NotFound) || !fault.Is(err2, fault.NotFound) {
				t.Errorf("%v of %v: %v, %v", of, whose, err1, err2)
			}
		}
	}
}

func TestLogKeepsWhatMatches(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	at := time.Now().Truncate(time.Second)
	plain, old, user, no := call(tenant, at), call(tenant, at.Add(-2*day)), call(tenant, at), refusal(tenant, at)
	user.EndUser, user.ModelAsked, user.ProviderKey = "ann", "claude", sub(tenant, 9)
	user.Tags = map[string]string{"team": "red"}
	b.ingest(s.run(t, plain, old, user, no))
	for name, c := range map[string]struct {
		q    RequestFilter
		want int
	}{
		"everything": {RequestFilter{}, 4},
		"a day":      {RequestFilter{From: at.Add(-time.Hour), To: at.Add(time.Second)}, 3},
		"end user":   {RequestFilter{Filter: Filter{EndUser: "ann"}}, 1},
		"model":      {RequestFilter{Filter: Filter{Model: "claude"}}, 1},
		"refused":    {RequestFilter{Filter: Filter{Outcome: "refused"}}, 1},
		"a tag":      {RequestFilter{Filter: Filter{Tag: Tag{"team", "red"}}}, 1},
		"other tag":  {RequestFilter{Filter: Filter{Tag: Tag{"team", "blue"}}}, 0},
		"its key":    {RequestFilter{Filter: Filter{ProviderKey: sub(tenant, 9)}}, 1},
		"a request":  {RequestFilter{Request: old.RequestID}, 1},
		"customer":   {RequestFilter{Filter: Filter{Customer: sub(tenant, 1)}}, 4},
		"a stranger": {RequestFilter{Filter: Filter{Counter: id.New()}}, 0},
		"tests":      {RequestFilter{Filter: Filter{Tests: OnlyTests}}, 0},
	} {
		c.q.Limit = 100
		page, err := b.reports().Requests(t.Context(), tenant, c.q)
		must(t, err)
		if len(page) != c.want {
			t.Errorf("%s: %d calls, want %d", name, len(page), c.want)
		}
	}
}
