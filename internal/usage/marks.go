package usage

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/queue"
)

// firstMarks asks once which events the books have, so that a start does not
// send again what is only kept for a while. Without an answer in a few seconds
// everything on disk is sent: the books refuse doubles.
func (p *Publisher) firstMarks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.pollMarks(ctx); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("committed usage not known at start", "error", err)
	}
}

// pollMarks tells the spool which of its numbers are committed.
func (p *Publisher) pollMarks(ctx context.Context) error {
	var marks [Shards]numbers
	err := p.db.Tx(ctx, func(tx pgx.Tx) error {
		marks = [Shards]numbers{}
		rows, err := tx.Query(ctx, `
			select m.shard, lower(r), upper(r) - 1
			from usage_marks m, unnest(m.committed) r
			where m.instance_id = $1`, p.spool.instance)
		if err != nil {
			return err
		}
		var shard int
		var s span
		_, err = pgx.ForEachRow(rows, []any{&shard, &s.first, &s.last}, func() error {
			if shard >= 0 && shard < Shards {
				marks[shard].add(s.first, s.last)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for shard, last := range p.spool.commit(marks) {
		if last > 0 {
			p.o.Log.Error("the spool is older than the books: what is in it is sent again", "shard", shard, "number", last)
			p.resendAll(shard, last)
		}
	}
	return nil
}

// resendAll has a shard sent from the start of the disk, up to a number, without
// regard to what is committed.
func (p *Publisher) resendAll(shard int, upTo int64) {
	p.doubt[shard].Store(upTo)
	p.resend <- shard
}

// follow keeps the spool's view of the books up to date, and has sent again what
// stands still.
func (p *Publisher) follow(ctx context.Context) {
	tick := time.NewTicker(p.o.PollEvery)
	defer tick.Stop()
	var still [Shards]stillness
	poll := trouble{log: p.o.Log, what: "committed usage not known"}
	for {
		if !p.spool.progress().drained() {
			poll.say(ctx, p.pollMarks(ctx))
		}
		now := p.spool.o.Now() // before the numbers: what ends from here on is in the next look
		prog := p.spool.progress()
		p.fresh.observe(now, prog)
		for shard := range still {
			if prog.missing[shard] <= prog.given[shard] && still[shard].lasts(prog.missing[shard]) >= p.o.ResendAfter {
				p.unstick(ctx, shard, &still[shard])
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stillness is since when a shard's first missing number has been the same.
type stillness struct {
	missing int64
	since   time.Time
	asked   time.Time // the last look at the queue
}

func (s *stillness) lasts(missing int64) time.Duration {
	if s.missing != missing {
		*s = stillness{missing: missing, since: time.Now(), asked: time.Now()}
	}
	return time.Since(s.asked)
}

// patience is how many times ResendAfter events may wait in the queue, where
// the workers are only slow, before they are sent again all the same.
const patience = 20

// unstick sends a shard again unless its events still wait in the queue.
func (p *Publisher) unstick(ctx context.Context, shard int, s *stillness) {
	s.asked = time.Now()
	if p.taken(shard) < s.missing {
		return // the queue has not had them yet
	}
	waiting, err := p.queue.Waiting(ctx, queue.Subject(shard))
	if err != nil || waiting > 0 && time.Since(s.since) < patience*p.o.ResendAfter {
		return
	}
	s.since = time.Now()
	select {
	case p.resend <- shard:
		p.o.Log.Warn("usage events sent again", "shard", shard, "from", s.missing)
	default:
	}
}
