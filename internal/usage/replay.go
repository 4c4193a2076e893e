package usage

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// replayEvery is how often a worker looks for dead letters that somebody asked to
// have counted.
const replayEvery = 2 * time.Second

// Replays counts dead letters that somebody asked for, until ctx ends.
func (w *Worker) Replays(ctx context.Context) error {
	lost := trouble{log: w.o.Log, what: "dead letters not replayed"}
	for ctx.Err() == nil {
		lost.say(ctx, w.replayAsked(ctx))
		sleep(ctx, replayEvery)
	}
	return nil
}

func (w *Worker) replayAsked(ctx context.Context) error {
	var list []Letter
	err := w.db.Tx(ctx, func(tx pgx.Tx) error {
		list = nil
		rows, err := tx.Query(ctx, `
			select `+letterColumns+`
			from dead_letters where asked_at is not null and replayed_at is null
			order by dead_letter_id limit 100`)
		if err != nil {
			return err
		}
		var l Letter
		_, err = pgx.ForEachRow(rows, l.fields(), func() error {
			list = append(list, l)
			return nil
		})
		return err
	})
	for _, l := range list {
		if err == nil {
			err = w.replay(ctx, l)
		}
	}
	return err
}

// replay takes a letter's event through ingest again: with its mark and with the
// note that it is counted, in one transaction. One whose id an event with another
// body has, or whose day is gone, stays what it is.
func (w *Worker) replay(ctx context.Context, l Letter) error {
	it := item{hash: sha256.Sum256(l.Payload), line: l.Payload}
	reason := it.read(*l.Shard, w.o.Now())
	it.event.Instance, it.event.Shard, it.event.Number = *l.Instance, *l.Shard, *l.Number
	if reason == "" {
		var stays staysLetter
		err := w.try(ctx, batch{instance: *l.Instance, shard: *l.Shard, first: *l.Number, last: *l.Number, items: []*item{&it}, replays: l.ID})
		switch {
		case err == nil:
			w.o.Log.Info("dead letter counted", "letter", l.ID, "instance", l.Instance, "shard", *l.Shard, "number", *l.Number)
			return nil
		case errors.As(err, &stays):
			reason = string(stays)
		case impossible(err):
			reason = refusedByDatabase
		default:
			return err
		}
	}
	return w.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update dead_letters set asked_at = null, refused = $2 where dead_letter_id = $1 and replayed_at is null`, l.ID, reason)
		return err
	})
}

// staysLetter is the reason for which a replayed event cannot be counted.
type staysLetter string

func (s staysLetter) Error() string {
	return "usage: a replayed event stays a dead letter: " + string(s)
}

// queueReplayed notes that the batch's letter is counted.
func queueReplayed(rest *pgx.Batch, letter uuid.UUID) {
	if letter != uuid.Nil {
		rest.Queue(`update dead_letters set replayed_at = now(), asked_at = null, refused = null where dead_letter_id = $1 and replayed_at is null`, letter)
	}
}
