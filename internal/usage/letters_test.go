package usage

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
)

// noted is an audit that remembers what was done.
type noted struct{ actions []string }

func (n *noted) audit(_ context.Context, _ pgx.Tx, _ uuid.UUID, action, object string, _ any) error {
	n.actions = append(n.actions, action+" "+object)
	return nil
}

// early is a worker whose clock is so far behind that it takes honest events for
// absurd.
func (b books) early() *Worker {
	return NewWorker(b.Worker, nil, testKeys, WorkerOptions{Log: quiet(b.t), Now: func() time.Time { return time.Now().Add(-72 * time.Hour) }})
}

// TestAReplayedLetterIsCountedOnce, with its mark, however many workers try it and
// however often it is asked for.
func TestAReplayedLetterIsCountedOnce(t *testing.T) {
	t.Parallel()
	b, s, tenant, operator := newBooks(t), newSource(), id.New(), id.New()
	e := call(tenant, time.Now())
	must(t, b.early().ingest(t.Context(), s.run(t, e)))
	p, n := NewPipeline(b.App), &noted{}
	list, err := p.Letters(t.Context(), false)
	must(t, err)
	if len(list) != 1 || list[0].Reason != "absurd_time" || !list[0].Replayable() || *list[0].Number != 1 {
		t.Fatalf("got %+v", list)
	}
	wantTotals(t, b.Worker, totals{})
	must(t, p.AskReplay(t.Context(), operator, list[0].ID, n.audit))
	if err := p.AskReplay(t.Context(), operator, list[0].ID, n.audit); !fault.Is(err, fault.Conflict) {
		t.Errorf("asked twice: %v", err)
	}
	asked, err := p.letter(t.Context(), list[0].ID)
	must(t, err)
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			w := NewWorker(b.Worker, nil, testKeys, WorkerOptions{Log: quiet(t)})
			if err := w.replay(context.WithoutCancel(t.Context()), asked); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	must(t, b.w.replayAsked(t.Context()))
	wantTotals(t, b.Worker, calls(1))
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,2)}" {
		t.Errorf("marks are %s", got)
	}
	state, err := p.State(t.Context())
	must(t, err)
	all, err := p.Letters(t.Context(), true)
	must(t, err)
	if len(state.Letters) != 0 || len(all) != 1 || all[0].ReplayedAt == nil || all[0].AskedAt != nil || len(n.actions) != 1 {
		t.Errorf("afterwards %+v, %+v, audited %v", state.Letters, all, n.actions)
	}
	if err := p.AskReplay(t.Context(), operator, list[0].ID, n.audit); fault.Of(err).Code != "letter_not_replayable" {
		t.Errorf("a counted letter again: %v", err)
	}
	if err := p.AskReplay(t.Context(), operator, id.New(), n.audit); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown letter: %v", err)
	}
}

// TestAReplayedConflictStaysOne, and what no worker can read stays what it is.
func TestAReplayedConflictStaysOne(t *testing.T) {
	t.Parallel()
	b, s, tenant, operator := newBooks(t), newSource(), id.New(), id.New()
	e := call(tenant, time.Now())
	forked := e
	forked.Tokens.Output = 1000
	b.ingest(s.run(t, e))
	b.ingest(s.run(t, forked))
	b.ingest(s.raw(ShardOf(tenant), `{"nonsense":`))
	forged := s.run(t, call(tenant, time.Now()))
	delete(forged.Header, headerSignature)
	b.ingest(forged)
	p, n := NewPipeline(b.App), &noted{}
	list, err := p.Letters(t.Context(), false)
	must(t, err)
	refused := 0
	for _, l := range list {
		err := p.AskReplay(t.Context(), operator, l.ID, n.audit)
		if l.Reason == badSignature {
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("what nobody signed is tried: %v", err)
			}
			continue
		}
		must(t, err)
		must(t, b.w.replayAsked(t.Context()))
		after, err := p.Letter(t.Context(), l.ID)
		must(t, err)
		if after.Refused == nil || *after.Refused != l.Reason || after.ReplayedAt != nil || !after.Replayable() {
			t.Errorf("after its replay %+v", after)
		}
		refused++
	}
	wantTotals(t, b.Worker, calls(1))
	if got := b.letters(); refused != 2 || got != "bad_body bad_signature conflict" {
		t.Errorf("%d were tried; the letters are %s", refused, got)
	}
}

// TestOnlyWhatIsGoneIsRetired, by somebody whose word is written down.
func TestOnlyWhatIsGoneIsRetired(t *testing.T) {
	t.Parallel()
	b, s, operator := newBooks(t), newSource(), id.New()
	p, n := NewPipeline(b.App), &noted{}
	tenant := id.New()
	b.ingest(s.run(t, call(tenant, time.Now()), call(tenant, time.Now())))
	shard := ShardOf(tenant)
	owner(t, b.Database, `insert into instances (instance_id, host, started_at, seen_at, numbers, fresh_at)
		values ('`+s.instance.String()+`', 'h', now() - interval '1 hour', now(), array_fill(0::bigint, array[8]), now() - interval '40 seconds')`)
	owner(t, b.Database, `update instances set numbers[`+string(rune('1'+shard))+`] = 5`)
	state, err := p.State(t.Context())
	must(t, err)
	if len(state.Instances) != 1 {
		t.Fatalf("got %+v", state)
	}
	i := state.Instances[0]
	if got := i.Shards[shard]; !i.Live(state.AsOf) || i.Missing != 3 || state.Missing != 3 || got.Given != 5 || got.Committed != 2 || state.Lag < 40*time.Second || state.Lag > 5*time.Minute {
		t.Errorf("got %+v", state)
	}
	if err := p.Retire(t.Context(), operator, i.ID, n.audit); fault.Of(err).Code != "instance_runs" {
		t.Errorf("one that runs: %v", err)
	}
	if err := p.Retire(t.Context(), operator, id.New(), n.audit); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that nobody knows: %v", err)
	}
	owner(t, b.Database, `update instances set seen_at = now() - interval '2 minutes'`)
	must(t, p.Retire(t.Context(), operator, i.ID, n.audit))
	must(t, p.Retire(t.Context(), operator, i.ID, n.audit))
	state, err = p.State(t.Context())
	must(t, err)
	if !state.Instances[0].Over() || state.Missing != 0 || state.Lag != 0 || len(n.actions) != 1 {
		t.Errorf("afterwards %+v, audited %v", state, n.actions)
	}
}
