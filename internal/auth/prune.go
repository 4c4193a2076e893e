package auth

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// Pruner deletes changes that every process had time to see. It is for one
// goroutine; several processes may have one each.
type Pruner struct {
	db    *postgres.DB // of the worker
	now   func() time.Time
	taken []takenSnapshot // oldest first
}

type takenSnapshot struct {
	at       time.Time
	snapshot string
}

// NewPruner makes one.
func NewPruner(db *postgres.DB, now func() time.Time) *Pruner { return &Pruner{db: db, now: now} }

// Run prunes every few minutes until ctx ends.
func (p *Pruner) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(ChangesKept / 4)
	defer tick.Stop()
	for {
		if _, err := p.Prune(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "changes of the configuration not pruned", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Prune deletes the changes that had committed ChangesKept ago, as far as it
// knows: it looks at what a snapshot of that time shows, for a transaction that
// began long ago may have committed only now. It returns how many it deleted.
func (p *Pruner) Prune(ctx context.Context) (deleted int64, err error) {
	now := p.now()
	var snapshot string
	old := -1
	for i, t := range p.taken {
		if now.Sub(t.at) >= ChangesKept {
			old = i
		}
	}
	err = p.db.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select pg_current_snapshot()::text`).Scan(&snapshot); err != nil || old < 0 {
			return err
		}
		tag, err := tx.Exec(ctx, `
			delete from config_changes
			where xid < pg_snapshot_xmax($1::text::pg_snapshot) and pg_visible_in_snapshot(xid, $1::text::pg_snapshot)`, p.taken[old].snapshot)
		deleted = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, err
	}
	p.taken = append(p.taken[max(old, 0):], takenSnapshot{p.now(), snapshot})
	return deleted, nil
}
