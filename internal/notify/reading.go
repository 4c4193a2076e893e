package notify

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// Reading is how one thing that an alert watches stands in a period.
type Reading struct {
	Alert   uuid.UUID
	Subject string // what it is, as a stable name: a ledger, a scope
	Name    string // for people
	Period  time.Time
	Value   int64 // of money in micro-units, of books that are behind in minutes, of days that differ their rows
	Of      int64 // the limit or the threshold; of days that differ 0
}

// passed tells whether it is where the alert tells.
func (r Reading) passed(a Alert) bool {
	switch {
	case a.Kind == AlertBehind:
		return r.Value >= r.Of
	case a.Kind != AlertUsage:
		return true
	case a.Percent > 0:
		return float64(r.Value)*100 >= float64(a.Percent)*float64(r.Of) && r.Value > 0
	}
	return r.Value >= a.Amount
}

// books reads of one tenant what its alerts watch, in one transaction.
type books struct {
	ctx    context.Context
	tx     pgx.Tx
	tenant tenants.Tenant
	now    time.Time
	since  time.Time // only what was used after; zero: of the whole period
	known  time.Time // every call that ended before is counted; zero: only the period that runs is read
}

// A period that is over is read as long as something may come late: until the
// books have every call that ended within lateFor of its end, at most for a day.
const (
	lateFor       = time.Hour // as long as a reservation may run
	lateAtTheMost = 24 * time.Hour
)

// asOf reads up to when the books are complete.
func (b *books) asOf() error {
	return b.tx.QueryRow(b.ctx, `
		select least($1, min(coalesce(fresh_at, started_at)))
		from instances
		where stopped_at is null and retired_at is null`, b.now).Scan(&b.known)
}

// span is a period, half-open.
type span struct{ start, end time.Time }

func spanOf(z limits.Zones, w limits.Window, at time.Time) (s span) {
	if w == limits.WindowMonth {
		s.start, s.end, _ = z.Month(at)
	} else {
		s.start, s.end, _ = z.Day(at)
	}
	return s
}

// spans are the periods in which an alert may tell: the one that runs, and the one
// before while it may still fill, if the threshold is as old.
func (b books) spans(z limits.Zones, w limits.Window, a Alert) []span {
	runs := spanOf(z, w, b.now)
	if b.known.IsZero() || !b.known.Before(runs.start.Add(lateFor)) || !b.now.Before(runs.start.Add(lateAtTheMost)) || !a.SetAt.Before(runs.start) {
		return []span{runs}
	}
	return []span{runs, spanOf(z, w, runs.start.Add(-time.Nanosecond))}
}

func (b books) read(a Alert) ([]Reading, error) {
	switch {
	case a.Kind == AlertCooling, a.Kind == AlertFailed:
		return b.benches(a)
	case a.Kind == AlertUnpriced:
		return b.unpriced(a)
	case a.Kind == AlertBehind:
		return b.behind(a)
	case a.Kind == AlertDiffer:
		return b.apart(a)
	case a.Kind == AlertLetters:
		return b.letters(a)
	case a.Percent > 0:
		return b.shares(a)
	}
	return b.amounts(a)
}

// amounts are sums of the period: of the tenant, or of each customer, key or
// provider key that was used.
func (b books) amounts(a Alert) ([]Reading, error) {
	column := map[limits.ScopeKind]string{limits.ScopeCustomer: "customer_id", limits.ScopeAPIKey: "counter_id", limits.ScopeProviderKey: "provider_key_id"}[a.Scope]
	by := column
	if column == "" {
		column, by = "tenant_id", "tenant_id"
	}
	sum := map[limits.Dimension]string{
		limits.DimensionRequests: "sum(requests)", limits.DimensionTokens: "sum(input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens)",
		limits.DimensionInputTokens: "sum(input_tokens + cached_input_tokens + cache_write_tokens)", limits.DimensionOutputTokens: "sum(output_tokens + reasoning_tokens)",
		limits.DimensionUnits: "sum(units)", limits.DimensionSpend: "trunc(coalesce(sum(charge_pico) filter (where not test and currency = $5), 0) / 1000000)",
	}[a.Dimension]
	var out []Reading
	for _, period := range b.spans(b.tenant.Zones, a.Window, a) {
		more, err := b.amountsOf(a, period, by, column, sum)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func (b books) amountsOf(a Alert, period span, by, column, sum string) (out []Reading, err error) {
	rows, err := b.tx.Query(b.ctx, `
		select `+by+`, `+sum+`::bigint
		from usage_day
		where tenant_id = $1 and bucket >= $2 and bucket < $3 and ($4::uuid is null or `+column+` = $4) and $5 <> ''
		  and (`+column+` = $1 or `+column+` <> '00000000-0000-0000-0000-000000000000')
		group by 1`, b.tenant.ID, period.start, period.end, optional(a.ScopeID), b.tenant.Currency)
	if err != nil {
		return nil, err
	}
	var of uuid.UUID
	var value int64
	_, err = pgx.ForEachRow(rows, []any{&of, &value}, func() error {
		out = append(out, Reading{Alert: a.ID, Subject: string(a.Scope) + ":" + of.String(), Name: of.String(), Period: period.start, Value: value, Of: a.Amount})
		return nil
	})
	return out, err
}

// shares are the calendar limits of the dimension and window at the scope, as
// their totals in the books stand to them.
func (b books) shares(a Alert) ([]Reading, error) {
	list, err := b.limits(a)
	if err != nil {
		return nil, err
	}
	var out []Reading
	for _, l := range list {
		if l.Dimension != a.Dimension || l.Window != a.Window || l.Policy != limits.PolicyCalendar || l.EachEndUser() {
			continue
		}
		for _, period := range b.spans(l.Zones(), l.Window, a) {
			more, err := b.sharesOf(a, l, period)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// sharesOf are the ledgers of a limit in one of its windows.
func (b books) sharesOf(a Alert, l limits.Limit, period span) (out []Reading, err error) {
	first := l.Ledger("")
	last := first
	if l.EachModel {
		last = first[:len(first)-1] + "$" // what follows # in the alphabet
	}
	rows, err := b.tx.Query(b.ctx, `
		select ledger, used from cap_totals
		where tenant_id = $1 and (ledger = $2 or $5 and ledger > $2 and ledger < $3) and window_start = $4`, b.tenant.ID, first, last, period.start, l.EachModel)
	if err != nil {
		return nil, err
	}
	r := Reading{Alert: a.ID, Name: l.Scope.Name, Period: period.start, Of: l.Amount}
	_, err = pgx.ForEachRow(rows, []any{&r.Subject, &r.Value}, func() error {
		out = append(out, r)
		return nil
	})
	return out, err
}

// limits are those that the alert's scope has, of whoever was used.
func (b books) limits(a Alert) (out []limits.Limit, err error) {
	if a.Scope == "" || a.Scope == limits.ScopeTenant {
		out = append(out, b.tenant.Limits...)
	}
	for _, kind := range []limits.ScopeKind{limits.ScopeCustomer, limits.ScopeAPIKey, limits.ScopeProviderKey} {
		if a.Scope != "" && a.Scope != kind {
			continue
		}
		used, err := b.used(kind, a)
		if err != nil {
			return nil, err
		}
		more, err := b.limitsOf(kind, used)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// used are the customers, counters or provider keys that had calls, by what the
// books counted lately, or in the whole period.
func (b books) used(kind limits.ScopeKind, a Alert) (out []uuid.UUID, err error) {
	if a.ScopeID != uuid.Nil {
		return []uuid.UUID{a.ScopeID}, nil
	}
	column := map[limits.ScopeKind]string{limits.ScopeCustomer: "customer_id", limits.ScopeAPIKey: "counter_id", limits.ScopeProviderKey: "provider_key_id"}[kind]
	table, since := "usage_minute", b.since
	if since.IsZero() {
		all := b.spans(b.tenant.Zones, a.Window, a)
		table, since = "usage_day", all[len(all)-1].start.Add(-48*time.Hour) // a provider's day may have begun before the tenant's
	}
	rows, err := b.tx.Query(b.ctx, `
		select distinct `+column+` from `+table+`
		where tenant_id = $1 and bucket >= $2 and `+column+` <> '00000000-0000-0000-0000-000000000000'`, b.tenant.ID, since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// owner is whose limits are read: the row that they hang on, and the scope that
// they are placed at.
type owner struct {
	row   uuid.UUID
	scope limits.Scope
	zones *limits.Zones // nil: the tenant's
}

var ownersOf = map[limits.ScopeKind]struct {
	kind tenants.LimitOwner
	sql  string
}{
	limits.ScopeCustomer: {tenants.OwnedByPlanVersion, `
		select s.plan_version_id, c.customer_id, c.name, '', null::jsonb
		from subscriptions s join customers c on c.tenant_id = s.tenant_id and c.customer_id = s.customer_id
		where s.tenant_id = $1 and s.status <> 'ended' and s.customer_id = any($2)`},
	limits.ScopeAPIKey: {tenants.OwnedByAPIKey, `
		select distinct on (counter_id) api_key_id, counter_id, name, '', null::jsonb
		from api_keys
		where tenant_id = $1 and counter_id = any($2)
		order by counter_id, api_key_id desc`},
	limits.ScopeProviderKey: {tenants.OwnedByProviderKey, `
		select provider_key_id, provider_key_id, name, zone, past_zones
		from provider_keys
		where tenant_id = $1 and provider_key_id = any($2) and removed_at is null`},
}

func (b books) limitsOf(kind limits.ScopeKind, used []uuid.UUID) (out []limits.Limit, err error) {
	if len(used) == 0 {
		return nil, nil
	}
	o := ownersOf[kind]
	rows, err := b.tx.Query(b.ctx, o.sql, b.tenant.ID, used)
	if err != nil {
		return nil, err
	}
	var rowsOf []uuid.UUID
	owners, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x owner, err error) {
		x.scope.Kind = kind
		var zone string
		var past []limits.PastZone
		err = row.Scan(&x.row, &x.scope.ID, &x.scope.Name, &zone, &past)
		if zone != "" {
			x.zones = &limits.Zones{Zone: zone, Past: past}
		}
		rowsOf = append(rowsOf, x.row)
		return x, err
	})
	if err != nil {
		return nil, err
	}
	byRow, err := tenants.LimitsOf(b.ctx, b.tx, b.tenant.ID, o.kind, rowsOf)
	if err != nil {
		return nil, err
	}
	over, err := b.overrides(kind, used)
	for _, x := range owners {
		placed := tenants.Placed(limits.Overridden(byRow[x.row], over[x.scope.ID]), x.scope)
		if x.zones != nil {
			placed = tenants.InZones(placed, *x.zones)
		}
		out = append(out, placed...)
	}
	return out, err
}

// overrides are the limits that customers have now in the place of their plans'.
func (b books) overrides(kind limits.ScopeKind, customers []uuid.UUID) (map[uuid.UUID][]limits.Limit, error) {
	if kind != limits.ScopeCustomer {
		return nil, nil
	}
	rows, err := b.tx.Query(b.ctx, `
		select o.customer_id, o.override_id
		from overrides o join subscriptions s on s.tenant_id = o.tenant_id and s.subscription_id = o.subscription_id
		where o.tenant_id = $1 and s.status <> 'ended' and o.customer_id = any($2) and o.starts_at <= $3 and (o.ends_at is null or o.ends_at > $3)
		order by o.starts_at`, b.tenant.ID, customers, b.now)
	if err != nil {
		return nil, err
	}
	var customer, override uuid.UUID
	var list []uuid.UUID
	whose := map[uuid.UUID]uuid.UUID{}
	if _, err := pgx.ForEachRow(rows, []any{&customer, &override}, func() error {
		list, whose[override] = append(list, override), customer
		return nil
	}); err != nil || len(list) == 0 {
		return nil, err
	}
	byRow, err := tenants.LimitsOf(b.ctx, b.tx, b.tenant.ID, tenants.OwnedByOverride, list)
	out := map[uuid.UUID][]limits.Limit{}
	for _, o := range list {
		out[whose[o]] = append(out[whose[o]], byRow[o]...)
	}
	return out, err
}

// benches are the cooldowns that run. One that began before the alert was made
// is none of its business.
func (b books) benches(a Alert) ([]Reading, error) {
	rows, err := b.tx.Query(b.ctx, `
		select h.provider_key_id, h.model, h.since, k.name
		from provider_health h join provider_keys k on k.tenant_id = h.tenant_id and k.provider_key_id = h.provider_key_id
		where h.tenant_id = $1 and h.source is not null and (h.until is null or h.until > $2) and h.since >= $3
		  and k.removed_at is null and ($4 <> 'provider_key_failed' or h.source = 'auth')
		  and ($5::uuid is null or h.provider_key_id = $5)`, b.tenant.ID, b.now, a.CreatedAt, string(a.Kind), optional(a.ScopeID))
	if err != nil {
		return nil, err
	}
	var out []Reading
	var key uuid.UUID
	var model string
	r := Reading{Alert: a.ID}
	_, err = pgx.ForEachRow(rows, []any{&key, &model, &r.Period, &r.Name}, func() error {
		r.Subject = id.ProviderKey.Format(key) + "/" + model
		named := r
		if model != "" {
			named.Name += ", " + model
		}
		out = append(out, named)
		return nil
	})
	return out, err
}

// unpriced are today's models whose tokens have no known cost.
func (b books) unpriced(a Alert) ([]Reading, error) {
	period := spanOf(b.tenant.Zones, limits.WindowDay, b.now).start
	rows, err := b.tx.Query(b.ctx, `
		select model_served, sum(requests)::bigint from usage_day
		where tenant_id = $1 and bucket = $2 and cost_currency = '' and not test and model_served <> '' and input_tokens + output_tokens + units > 0
		group by 1`, b.tenant.ID, period)
	if err != nil {
		return nil, err
	}
	var out []Reading
	r := Reading{Alert: a.ID, Period: period}
	_, err = pgx.ForEachRow(rows, []any{&r.Subject, &r.Value}, func() error {
		r.Name = r.Subject
		out = append(out, r)
		return nil
	})
	return out, err
}
