package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Expected is, of one key and model asked for, what its calls were expected to
// take against what they took: of the calls of the gateway that were served and
// whose provider stated the usage.
type Expected struct {
	Counter uuid.UUID
	Model   string // "": the models of the key beyond a bound
	Calls   int64

	ReservedInput, ReservedOutput int64 // tokens, at admission
	Input, Output                 int64 // tokens, in truth

	Guesses, Guessed, GuessedInput int64 // the calls whose input was guessed, the tokens of the guesses, and of the truth
}

// Expected lists every key and model of a tenant with calls on the UTC days of a
// range, by key, those with the most calls first. Unavailable if Postgres is out.
func (r *Reports) Expected(ctx context.Context, tenant uuid.UUID, from, to time.Time) (list []Expected, err error) {
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select counter_id, model, sum(calls)::bigint as calls,
			       sum(reserved_input_tokens)::bigint, sum(reserved_output_tokens)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
			       sum(guesses)::bigint, sum(guessed_tokens)::bigint, sum(guessed_input_tokens)::bigint
			from usage_estimates
			where tenant_id = $1 and day_utc >= $2::timestamptz::date and day_utc <= $3::timestamptz::date
			group by counter_id, model
			order by counter_id, calls desc, model`, tenant, from.UTC(), to.UTC())
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Expected, err error) {
			return e, row.Scan(&e.Counter, &e.Model, &e.Calls, &e.ReservedInput, &e.ReservedOutput, &e.Input, &e.Output, &e.Guesses, &e.Guessed, &e.GuessedInput)
		})
		return err
	})
	return list, err
}
