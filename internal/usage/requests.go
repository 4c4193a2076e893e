package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/money"
)

// RequestFilter asks for a page of the request log, newest first: calls that
// were admitted in [From, To). Zero To is now, zero From 30 days before To.
type RequestFilter struct {
	From, To time.Time
	Filter   Filter
	Request  uuid.UUID // only this one, whenever it was
	After    Cursor    // the last call of the page before; zero: the first page
	Limit    int       // 1 to 1,000
}

// Cursor is a place in the log. Calls of one instant are told apart by their id.
type Cursor struct {
	StartedAt time.Time
	ID        uuid.UUID
}

// CursorOf is the place of an event.
func CursorOf(e Event) Cursor { return Cursor{e.StartedAt, e.ID} }

// Requests is a page of the log. Corrections stand in it as rows of their own.
func (r *Reports) Requests(ctx context.Context, tenant uuid.UUID, q RequestFilter) (page []Event, err error) {
	q.fill(r.now())
	f := q.Filter
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+eventColumns+`
			from usage_events
			where tenant_id = $1 and day_utc between $2::timestamptz::date - 1 and $3::timestamptz::date + 1 and started_at >= $2 and started_at < $3
			  and ($4::timestamptz is null or (started_at, event_id) < ($4, $5))
			  and ($6 = `+noID+` or customer_id = $6) and ($7 = `+noID+` or counter_id = $7) and ($8 = `+noID+` or provider_key_id = $8)
			  and ($9 = '' or model_asked = $9)
			  and ($10 = '' or outcome = $10 or $10 = 'refused' and starts_with(outcome, 'refused_'))
			  and ($11 = 1 or test = ($11 = 2)) and ($12 = '' or end_user = $12)
			  and ($14 = '' or tags ->> $14 = $15) and ($16 = `+noID+` or request_id = $16)
			order by started_at desc, event_id desc
			limit $13`,
			tenant, q.From, q.To, orNull(q.After.StartedAt), q.After.ID, f.Customer, f.Counter, f.ProviderKey, f.Model, string(f.Outcome), int(f.Tests), f.EndUser, q.Limit,
			f.Tag.Name, f.Tag.Value, q.Request)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	return page, err
}

// fill completes the range. A later page needs no day after its cursor's.
func (q *RequestFilter) fill(now time.Time) {
	if q.Request != uuid.Nil && q.From.IsZero() && q.To.IsZero() {
		if at := id.Time(q.Request); at.Year() >= 2020 && at.Year() < 2200 {
			q.From, q.To = at.Add(-day), at.Add(day)
		}
	}
	if q.To.IsZero() {
		q.To = now.Add(time.Minute)
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-30 * day)
	}
	if end := q.After.StartedAt.Add(time.Microsecond); !q.After.StartedAt.IsZero() && end.Before(q.To) {
		q.To = end
	}
	q.Limit = min(max(q.Limit, 1), 1000)
}

// RequestByID is the call of a request, and the corrections of it; for one that
// was refused in a storm, the event that stands for it and others, if there is
// just one that can. NotFound (request_not_found) for an id that is unknown,
// another tenant's, or whose event is not committed yet; NotFound
// (request_counted) where several keys or limits were refused in storms of that
// second.
func (r *Reports) RequestByID(ctx context.Context, tenant, request uuid.UUID) (Event, []Event, error) {
	minted := id.Time(request)
	events, err := r.events(ctx, tenant, `request_id = $2 and day_utc between $3::timestamptz::date - 1 and $3::timestamptz::date + 1`, request, minted)
	if err != nil {
		return Event{}, nil, err
	}
	if len(events) == 0 {
		e, err := r.countedWith(ctx, tenant, minted)
		return e, nil, err
	}
	return events[0], events[1:], nil
}

// countedWith is the one event of a storm that a request of that instant can be
// part of: request ids say when a call came, to the millisecond.
func (r *Reports) countedWith(ctx context.Context, tenant uuid.UUID, came time.Time) (Event, error) {
	storms, err := r.events(ctx, tenant, `refused > 1 and day_utc between $3::timestamptz::date - 1 and $3::timestamptz::date + 1
		and started_at between $3::timestamptz - interval '1 second' and $3::timestamptz + interval '1 second' and ended_at >= $3 and $2::uuid is not null`, uuid.Nil, came)
	within := slices.DeleteFunc(slices.Clone(storms), func(e Event) bool { return e.StartedAt.After(came.Add(time.Millisecond)) })
	if len(within) > 0 {
		storms = within // the others came for calls that waited a while before they were refused
	}
	switch {
	case err != nil:
		return Event{}, err
	case len(storms) == 0:
		return Event{}, fault.New(fault.NotFound, "request_not_found", "There is no such request.")
	case len(storms) > 1:
		return Event{}, fault.Newf(fault.NotFound, "request_counted", "This call is not kept on its own: in its second so many were refused that most were only counted, by %d limits or keys. Look at the requests of %s UTC.", len(storms), came.UTC().Format(time.DateTime))
	}
	return storms[0], nil
}

// EventByID is one event. NotFound (event_not_found) as for RequestByID.
func (r *Reports) EventByID(ctx context.Context, tenant, event uuid.UUID) (Event, error) {
	events, err := r.events(ctx, tenant, `event_id = $2 and day_utc = $3::timestamptz::date`, event, id.Time(event))
	if err != nil {
		return Event{}, err
	}
	if len(events) == 0 {
		return Event{}, fault.New(fault.NotFound, "event_not_found", "There is no such event.")
	}
	return events[0], nil
}

// events are those that match, corrections last. An id of an impossible time
// matches none.
func (r *Reports) events(ctx context.Context, tenant uuid.UUID, where string, of uuid.UUID, minted time.Time) (events []Event, err error) {
	if minted.Year() > 2199 {
		return nil, nil
	}
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+eventColumns+` from usage_events where tenant_id = $1 and `+where+` order by corrects is not null, event_id`, tenant, of, minted)
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	return events, err
}

const eventColumns = `
	tenant_id, event_id, request_id, coalesce(customer_id, ` + noID + `), coalesce(subscription_id, ` + noID + `), coalesce(plan_version_id, ` + noID + `),
	coalesce(api_key_id, ` + noID + `), coalesce(counter_id, ` + noID + `), coalesce(provider_key_id, ` + noID + `), coalesce(corrects, ` + noID + `),
	coalesce(end_user, ''), tags, model_asked, model_served, kind, started_at, ended_at, local_day, outcome,
	requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units,
	estimated, charge_pico::text, currency, cost_pico::text, coalesce(cost_currency, ''), test, detail, instance_id, shard, number`

func scanEvent(row pgx.CollectableRow) (Event, error) {
	e := Event{Version: version}
	var tags, body []byte
	var charge string
	var cost *string
	err := row.Scan(&e.Tenant, &e.ID, &e.RequestID, &e.Customer, &e.Subscription, &e.PlanVersion,
		&e.Key, &e.Counter, &e.ProviderKey, &e.Corrects,
		&e.EndUser, &tags, &e.ModelAsked, &e.ModelServed, &e.Kind, &e.StartedAt, &e.EndedAt, &e.LocalDay, &e.Outcome,
		&e.Requests, &e.Refused, &e.Tokens.Input, &e.Tokens.CachedInput, &e.Tokens.CacheWrite, &e.Tokens.Output, &e.Tokens.Reasoning, &e.Units,
		&e.Estimated, &charge, &e.Currency, &cost, &e.CostCurrency, &e.Test, &body, &e.Instance, &e.Shard, &e.Number)
	if err != nil {
		return e, err
	}
	e.StartedAt, e.EndedAt, e.LocalDay = e.StartedAt.UTC(), e.EndedAt.UTC(), e.LocalDay.UTC()
	var d detail
	err = errors.Join(e.Charge.UnmarshalText([]byte(charge)), decodeOwn(body, &d))
	if tags != nil {
		err = errors.Join(err, decodeOwn(tags, &e.Tags))
	}
	if cost != nil {
		e.Cost = new(money.Pico)
		err = errors.Join(err, e.Cost.UnmarshalText([]byte(*cost)))
	}
	e.Stream, e.SelfReported, e.Estimate, e.Guess = d.Stream, d.SelfReported, d.Estimate, d.Guess
	e.Attempts, e.Charges, e.Refusal, e.Prices, e.Unsettled, e.Settled = d.Attempts, d.Charges, d.Refusal, d.Prices, d.Unsettled, d.Settled
	return e, err
}
