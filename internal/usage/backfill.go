package usage

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// Backfill stores events that were in no spool of ours, in one transaction, as
// those of a message are: rows, rollups, cap totals. An event whose id is
// stored counts nothing, so the same events may come again. instance is the
// source that they state; no numbers are committed for it. An event that the
// books cannot take is an error, and nothing is stored.
func (w *Worker) Backfill(ctx context.Context, instance uuid.UUID, events []Event) error {
	b := batch{instance: instance}
	for _, e := range events {
		e.clean()
		if reason := e.wrong(); reason != "" {
			return fmt.Errorf("event %s: %s", e.ID, reason)
		}
		line, err := encode(e)
		if err != nil {
			return err
		}
		e.Instance, e.Shard = instance, ShardOf(e.Tenant)
		b.items = append(b.items, &item{event: e, hash: sha256.Sum256(line), line: line})
	}
	b.settle()
	return w.try(ctx, b)
}

// Refusing is e as the event of a call that d did not admit.
func (e Event) Refusing(d limits.Decision) Event {
	first := d.Binding().Limit
	e.Outcome, e.Requests, e.Refused = Outcome(refusedPrefix+string(first.Dimension)+"_"+string(first.Window)), 0, 1
	e.Refusal = &Refusal{Code: RefusalCode(d), RetryAfter: d.RetryAfter}
	for _, v := range d.Violations {
		e.Refusal.Limits = append(e.Refusal.Limits, Refusing{
			Limit: v.Limit, Used: v.Used + v.Held, Remaining: v.Remaining, Requested: v.Requested, ResetAt: v.ResetAt,
			WindowStart: v.WindowStart, Full: v.Full, RetryAfter: v.RetryAfter,
		})
	}
	return e
}
