package usage

import (
	"fmt"
	"slices"
)

// window reads the next runs from disk, at most windowRuns of them.
func (p *Publisher) window() ([]run, error) {
	w := window{p: p, done: p.spool.committed()}
	at, err := p.spool.read(p.at, w.take)
	p.at = at
	for shard := range w.growing {
		w.flush(shard)
	}
	return w.runs, err
}

// window gathers events into runs: one grows per shard.
type window struct {
	p       *Publisher
	done    [Shards]numbers
	growing [Shards]run
	runs    []run
}

// take adds an event to the run of its shard; false leaves it for the next
// window.
func (w *window) take(r record) bool {
	doubted := r.number <= w.p.doubt[r.shard].Load()
	if r.number <= w.p.sent[r.shard] || !doubted && w.done[r.shard].has(r.number) {
		return true
	}
	g := &w.growing[r.shard]
	full := g.first == 0 || r.number != g.last+1 || g.last-g.first+1 >= maxRunEvents || len(g.body)+len(r.payload) >= maxRunBytes
	if full {
		w.flush(r.shard)
		if len(w.runs)+Shards > windowRuns {
			return false
		}
		*g = run{instance: w.p.spool.instance, shard: r.shard, first: r.number, body: w.p.room()}
		if doubted {
			g.again = fmt.Sprint("+", w.p.spool.started.UnixNano())
		}
	} else {
		g.body = append(g.body, '\n')
	}
	g.body = append(g.body, r.payload...)
	g.last = r.number
	w.p.sent[r.shard] = r.number
	return true
}

func (w *window) flush(shard int) {
	if w.growing[shard].first != 0 {
		w.runs = append(w.runs, w.growing[shard])
		w.growing[shard] = run{}
	}
}

// room is memory for a run; delivered takes it back.
func (p *Publisher) room() (b []byte) {
	if n := len(p.spare); n > 0 {
		b, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	return b
}

func (p *Publisher) delivered(runs []run) {
	for _, r := range runs[:min(len(runs), Shards-len(p.spare))] {
		p.spare = append(p.spare, r.body[:0])
	}
}

// committed is a copy of the numbers that need not be sent.
func (s *Spool) committed() [Shards]numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	var done [Shards]numbers
	for shard := range s.done {
		done[shard] = slices.Clone(s.done[shard])
	}
	return done
}
