package quotes

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/message"
	"weir/internal/tenants"
)

const (
	lapseBatch = 200
	lapseEvery = 30 * time.Second
)

// Run lapses quotes until ctx ends.
func (s *Service) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(lapseEvery)
	defer tick.Stop()
	for {
		if err := s.Lapse(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "quotes not lapsed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Lapse writes down which quotes expired, and tells. A quote is expired by the
// clock, whether it was written down or not; several workers may run this at
// once.
func (s *Service) Lapse(ctx context.Context) error {
	type due struct{ Tenant, Quote uuid.UUID }
	var list []due
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, quote_id from lookup_lapsed_quotes($1, $2)`, s.now(), lapseBatch)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[due])
		return err
	})
	for _, x := range list {
		err = errors.Join(err, s.lapse(ctx, x.Tenant, x.Quote))
	}
	return err
}

func (s *Service) lapse(ctx context.Context, tenant, quote uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		q, err := s.lock(ctx, tx, tenant, quote)
		if err != nil || q.Status != Expired {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update quotes set status = 'expired'
			where tenant_id = $1 and quote_id = $2 and status in ('sent', 'viewed')`, tenant, quote)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := message.Emit(ctx, tx, tenant, message.QuoteExpired, told(q)); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.expired", format(q), noted(q))
	})
}
