package catalogue

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var modelTable = table[Model]{
	sheet: modelSheet, read: readModels,
	remove: `delete from catalogue_models where tenant_id = $1`,
	insert: `
		insert into catalogue_models (tenant_id, provider, model, context, max_output, default_output, input, tools, valid_from, source)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
	args: func(m Model) []any {
		return []any{m.Provider, m.Model, m.Context, m.MaxOutput, m.DefaultOutput, m.Input, m.Tools, m.ValidFrom, m.Source}
	},
}

func readModels(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]Model, error) {
	rows, err := tx.Query(ctx, `
		select provider, model, context, max_output, default_output, input, tools, valid_from, source from catalogue_models
		where tenant_id = $1 order by provider, model, valid_from`, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Model, err error) {
		err = row.Scan(&m.Provider, &m.Model, &m.Context, &m.MaxOutput, &m.DefaultOutput, &m.Input, &m.Tools, &m.ValidFrom, &m.Source)
		return m, err
	})
}

var limitTable = table[Published]{
	sheet: limitSheet, read: readLimits,
	remove: `delete from catalogue_limits where tenant_id = $1`,
	insert: `
		insert into catalogue_limits (tenant_id, provider, model, tier, dimension, win, amount, cached_input, valid_from, valid_to, source)
		values ($1, $2, $3, $4, $5, $6, $7, case when $8 then 'free' else 'counted' end, $9, $10, $11)`,
	args: func(p Published) []any {
		var to *time.Time
		if !p.ValidTo.IsZero() {
			to = &p.ValidTo
		}
		return []any{p.Provider, p.Model, p.Tier, string(p.Dimension), string(p.Window), p.Amount, p.CachedFree, p.ValidFrom, to, p.Source}
	},
}

func readLimits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]Published, error) {
	rows, err := tx.Query(ctx, `
		select provider, model, tier, dimension, win, amount, cached_input = 'free', valid_from, valid_to, source from catalogue_limits
		where tenant_id = $1 order by provider, model, tier, dimension, win, valid_from`, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Published, err error) {
		var to *time.Time
		err = row.Scan(&p.Provider, &p.Model, &p.Tier, &p.Dimension, &p.Window, &p.Amount, &p.CachedFree, &p.ValidFrom, &to, &p.Source)
		if to != nil {
			p.ValidTo = *to
		}
		return p, err
	})
}

var priceTable = table[Price]{
	sheet: priceSheet, read: readPrices,
	remove: `delete from catalogue_prices where tenant_id = $1`,
	insert: `
		insert into catalogue_prices (tenant_id, provider, model, class, above, micros_per_million, currency, valid_from, source)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
	args: func(p Price) []any {
		return []any{p.Provider, p.Model, string(p.Class), p.Above, p.MicrosPerMillion, p.Currency, p.ValidFrom, p.Source}
	},
}

func readPrices(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]Price, error) {
	rows, err := tx.Query(ctx, `
		select provider, model, class, above, micros_per_million, currency, valid_from, source from catalogue_prices
		where tenant_id = $1 order by provider, model, class, above, valid_from`, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Price, err error) {
		err = row.Scan(&p.Provider, &p.Model, &p.Class, &p.Above, &p.MicrosPerMillion, &p.Currency, &p.ValidFrom, &p.Source)
		return p, err
	})
}
