package usage

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/postgres"
	"weir/internal/queue"
)

const day = 24 * time.Hour

// partition is the day that an event's id puts it into.
func partition(event uuid.UUID) time.Time { return id.Time(event).Truncate(day) }

// ensureDays makes the partitions that the batch needs, each in a transaction of
// its own, so that no insert ever waits for one while it holds rows.
func (w *Worker) ensureDays(ctx context.Context, b batch) error {
	for _, it := range b.items {
		d := partition(it.event.ID)
		if _, known := w.days.Load(d); known {
			continue
		}
		err := w.db.Tx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select usage_ensure_day($1)", d)
			return err
		})
		if err != nil {
			return err
		}
		w.days.Store(d, true)
	}
	return nil
}

// commit is the one transaction. All workers lock rows in the same order:
// events by id, the rollups, caps and estimates by key, letters by id, the mark last.
func (w *Worker) commit(ctx context.Context, b batch) error {
	err := w.write(ctx, b, copyNew)
	if impossible(err) || postgres.Code(err) == undefinedTable {
		return w.write(ctx, b, insertNew)
	}
	return err
}

const undefinedTable = "42P01"

// storing stores what is new of a batch in a transaction, and says which events
// that were, and what it refuses of the others.
type storing func(ctx context.Context, tx pgx.Tx, b batch) (fresh []*Event, refused []letter, err error)

// write is one try.
func (w *Worker) write(ctx context.Context, b batch, store storing) error {
	return w.db.Tx(ctx, func(tx pgx.Tx) error {
		fresh, refused, err := store(ctx, tx, b)
		if err != nil {
			return err
		}
		if b.replays != uuid.Nil && len(refused) > 0 {
			return staysLetter(refused[0].reason)
		}
		letters := slices.Concat(b.letters, refused)
		sortLetters(letters)
		learned := lessons(fresh)
		if err := w.classes.seat(ctx, tx, learned); err != nil {
			return err
		}
		var rest pgx.Batch
		queueRollups(&rest, fresh)
		queueLessons(&rest, learned)
		queueLetters(&rest, letters)
		queueReplayed(&rest, b.replays)
		again := b.again(fresh, letters)
		for _, r := range b.runs() {
			queueMark(&rest, r, again)
		}
		if rest.Len() > 0 {
			if err := tx.SendBatch(ctx, &rest).Close(); err != nil {
				return err
			}
		}
		w.beforeCommit()
		return nil
	})
}

// insertNew stores the events that are not stored yet.
func insertNew(ctx context.Context, tx pgx.Tx, b batch) (fresh []*Event, refused []letter, err error) {
	stored, err := insertEvents(ctx, tx, b.items)
	if err != nil {
		return nil, nil, err
	}
	refused, err = findRefused(ctx, tx, b.items, stored)
	return newOnes(b.items, stored), refused, err
}

// newOnes are the events that the transaction stored: only they are added up.
func newOnes(items []*item, stored map[uuid.UUID]bool) []*Event {
	events := make([]*Event, 0, len(stored))
	for _, it := range items {
		if stored[it.event.ID] {
			events = append(events, &it.event)
		}
	}
	return events
}

// findRefused are the items that are not stored and were not before: their id was
// taken by another body, or their day is gone.
func findRefused(ctx context.Context, tx pgx.Tx, items []*item, stored map[uuid.UUID]bool) ([]letter, error) {
	if len(stored) == len(items) {
		return nil, nil
	}
	var tenants, ids [][16]byte
	var days []time.Time
	old := map[uuid.UUID]*item{}
	for _, it := range items {
		if !stored[it.event.ID] {
			old[it.event.ID] = it
			tenants, days, ids = append(tenants, it.event.Tenant), append(days, partition(it.event.ID)), append(ids, it.event.ID)
		}
	}
	rows, err := tx.Query(ctx, `
		select e.event_id, e.body_hash
		from unnest($1::uuid[], $2::date[], $3::uuid[]) as k (tenant_id, day_utc, event_id)
		join usage_events e using (tenant_id, day_utc, event_id)`, tenants, days, ids)
	if err != nil {
		return nil, err
	}
	var letters []letter
	var event uuid.UUID
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&event, &hash}, func() error {
		if it := old[event]; !bytes.Equal(it.hash[:], hash) {
			letters = append(letters, it.letter(conflict))
		}
		delete(old, event)
		return nil
	})
	for _, it := range old {
		letters = append(letters, it.letter(tooLate))
	}
	return letters, err
}

// queueLetters keeps what was refused, with the headers it came with.
func queueLetters(rest *pgx.Batch, letters []letter) {
	for _, l := range letters {
		m := l.message
		if m == nil {
			m = &queue.Message{}
		}
		headers, err := encode(m.Header)
		if err != nil {
			headers = []byte("{}")
		}
		rest.Queue(`
			insert into dead_letters (dead_letter_id, reason, subject, headers, payload, instance_id, shard, number)
			values ($1, $2, $3, $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid), nullif($7, -1), nullif($8, 0))
			on conflict do nothing`,
			l.id(), l.reason, m.Subject, string(headers), l.payload, l.instance, l.place(), l.number)
	}
}

// origin is where the numbers of events are counted.
type origin struct {
	instance uuid.UUID
	shard    int
}

// again counts, by origin, the events of the batch that were stored before: those
// that are neither new nor dead letters.
func (b batch) again(fresh []*Event, letters []letter) map[origin]int64 {
	if b.replays != uuid.Nil {
		return nil
	}
	n := map[origin]int64{}
	for _, r := range b.runs() {
		if r.first > 0 && !slices.ContainsFunc(r.letters, func(l letter) bool { return l.reason == badRun }) {
			n[origin{r.instance, r.shard}] += r.last - r.first + 1
		}
	}
	for _, e := range fresh {
		n[origin{e.Instance, e.Shard}]--
	}
	for _, l := range letters {
		if l.number > 0 && l.reason != badRun {
			n[origin{l.instance, l.shard}]--
		}
	}
	return n
}

// queueMark notes the numbers as committed, whatever became of the events, and
// counts what came again: of its origin's first run all of it.
func queueMark(rest *pgx.Batch, b batch, again map[origin]int64) {
	if b.first == 0 {
		return
	}
	at := origin{b.instance, b.shard}
	rest.Queue(`
		insert into usage_marks (instance_id, shard, committed, events_again)
		values ($1, $2, int8multirange(int8range($3, $4, '[]')), $5)
		on conflict (instance_id, shard) do update
		set committed = usage_marks.committed + excluded.committed, updated_at = now(),
		    events_again = usage_marks.events_again + excluded.events_again,
		    messages_again = usage_marks.messages_again + case when $6 and usage_marks.committed @> excluded.committed then 1 else 0 end`,
		b.instance, b.shard, b.first, b.last, max(again[at], 0), b.replays == uuid.Nil)
	delete(again, at)
}
