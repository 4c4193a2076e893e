package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/devstack/localpg"
	"weir/internal/postgres"
	"weir/internal/usage"
)

// patience is how long the books may take once calls end no more.
const patience = 20 * time.Minute

var seed = flag.Uint64("seed", 0, "of the random choices; 0: another one every time")

// TestNothingIsLostOrDoubledWhateverIsKilled is the short form of the soak.
func TestNothingIsLostOrDoubledWhateverIsKilled(t *testing.T) {
	killEach(t, 12, 6_000)
}

// killEach has calls end while each process on their way to the books is killed,
// NATS comes back with an older store, messages come again in any order, and one
// source does not come back; and then compares.
func killEach(t *testing.T, kills, calls int) {
	t.Helper()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -run '^%s$' ./test/pipeline -args -seed=%d", t.Name(), *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	p := newPlant(t, random, calls/2)
	victims := []string{"nats", "worker1", "worker2", "source1", "source2", "postgres"}
	began := time.Now()
	for i := range kills {
		p.await(calls * (i + 1) / (kills + 2))
		if i == kills*2/3 {
			p.retire("source1", "source2")
			victims = slices.DeleteFunc(victims, func(v string) bool { return v == "source1" })
			continue
		}
		name := victims[random.IntN(len(victims))]
		if i < len(victims) {
			name = victims[i] // each at least once
		}
		p.kill(name)
		p.again()
	}
	p.quiet()
	took := time.Since(began)
	seen := p.seen()
	t.Logf("%d calls, killed %v, %s: %.0f calls a second", len(seen), p.kills, took.Round(time.Second), float64(len(seen))/took.Seconds())
	p.compare(seen, kills)
}

// await waits until the callers have seen so many ends, or as many as are to come.
func (p *plant) await(n int) {
	p.t.Helper()
	most := 2 * p.goal
	if p.gone == "source1" {
		most = p.lines("source1") + p.goal
	}
	p.eventually("calls end", func() string {
		if ended := p.lines("source1") + p.lines("source2"); ended < min(n, most) {
			return fmt.Sprintf("%d of %d", ended, n)
		}
		return ""
	})
}

// lines is how many lines a ledger has; it is read on from where it was.
func (p *plant) lines(source string) int {
	f, err := os.Open(p.ledger(source))
	if err != nil {
		return p.read[source].lines
	}
	defer f.Close()
	at := p.read[source]
	rest, err := io.ReadAll(io.NewSectionReader(f, at.off, 1<<40))
	must(p.t, err)
	at.off, at.lines = at.off+int64(len(rest)), at.lines+bytes.Count(rest, []byte{'\n'})
	p.read[source] = at
	return at.lines
}

// progress is how far a ledger was read.
type progress struct {
	off   int64
	lines int
}

// quiet waits until every source has made its calls and the books have all that
// was numbered.
func (p *plant) quiet() {
	p.t.Helper()
	p.eventually("every call has ended", func() string {
		one, two := p.lines("source1"), p.lines("source2")
		if two < p.goal || p.gone != "source1" && one < p.goal {
			return fmt.Sprintf("%d and %d of %d", one, two, p.goal)
		}
		return ""
	})
	db := p.worker()
	defer db.Close()
	p.eventually("the books have every number", func() string {
		var open string
		err := db.Tx(context.Background(), func(tx pgx.Tx) error {
			return tx.QueryRow(context.Background(), openNumbers).Scan(&open)
		})
		if err != nil {
			return err.Error()
		}
		return open
	})
}

// openNumbers are the shards of instances whose mark does not end where their
// numbers do, without a gap.
const openNumbers = `
	select coalesce(string_agg(format('%s.%s gave %s, committed %s', i.instance_id, s - 1, i.numbers[s], m.committed), '; '), '')
	from instances i
	cross join generate_subscripts(i.numbers, 1) s
	left join usage_marks m on m.instance_id = i.instance_id and m.shard = s - 1
	where i.numbers[s] > 0 and (m.committed is null or m.committed <> int8multirange(int8range(1, i.numbers[s], '[]')))`

func (p *plant) worker() *postgres.DB {
	p.t.Helper()
	db, err := postgres.Open(p.t.Context(), p.url(localpg.Worker), postgres.Options{MaxConns: 2, StatementTimeout: time.Minute})
	must(p.t, err)
	return db
}

// sight is what a caller saw of a call.
type sight struct {
	tenant uuid.UUID
	tokens int64
	charge string
}

func (p *plant) seen() map[uuid.UUID]sight {
	p.t.Helper()
	out := map[uuid.UUID]sight{}
	for _, source := range []string{"source1", "source2"} {
		f, err := os.Open(p.ledger(source))
		must(p.t, err)
		for s := bufio.NewScanner(f); s.Scan(); {
			var call, tenant, charge string
			var tokens int64
			if _, err := fmt.Sscan(s.Text(), &call, &tenant, &tokens, &charge); err != nil {
				continue // the last line of a killed process
			}
			out[uuid.MustParse(call)] = sight{uuid.MustParse(tenant), tokens, charge}
		}
		must(p.t, f.Close())
	}
	return out
}

// compare holds the books against what callers saw: each call once, with its
// figures; nothing else but what was under way when its process was killed; and
// every sum the sum of the events.
func (p *plant) compare(seen map[uuid.UUID]sight, kills int) {
	t := p.t
	t.Helper()
	db := p.worker()
	defer db.Close()
	booked, more := 0, 0
	must(t, db.Tx(t.Context(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `select event_id, tenant_id, outcome, input_tokens + output_tokens, charge_pico::text from usage_events`)
		if err != nil {
			return err
		}
		var call, tenant uuid.UUID
		var outcome, charge string
		var tokens int64
		_, err = pgx.ForEachRow(rows, []any{&call, &tenant, &outcome, &tokens, &charge}, func() error {
			s, known := seen[call]
			switch {
			case !known:
				more++
			case outcome != "ok" || s != (sight{tenant, tokens, charge}):
				t.Errorf("%s: %s %d %s in the books, its caller saw %+v", call, outcome, tokens, charge, s)
			default:
				booked++
			}
			return nil
		})
		return err
	}))
	if booked != len(seen) {
		t.Errorf("%d calls in the books of %d that callers saw end", booked, len(seen))
	}
	if most := 4 * kills; more > most {
		t.Errorf("%d calls that nobody saw end, more than the %d that can have been under way", more, most)
	}
	var letters int
	must(t, db.Tx(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from dead_letters`).Scan(&letters)
	}))
	if letters != 0 {
		t.Errorf("%d dead letters", letters)
	}
	from := time.Now().Add(-48 * time.Hour)
	differ, err := usage.Reconcile(t.Context(), db, uuid.Nil, from, time.Now().Add(48*time.Hour), from)
	must(t, err)
	for _, d := range differ[:min(5, len(differ))] {
		t.Errorf("the books differ: %+v", d)
	}
}

// eventually polls until missing says that nothing is.
func (p *plant) eventually(what string, missing func() string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		lacks := missing()
		if lacks == "" {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %s: %s: %s", patience, what, lacks)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
