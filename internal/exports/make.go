package exports

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
)

const (
	lookEvery  = time.Second
	pruneEvery = 10 * time.Minute
	leaseFor   = time.Minute // longer than a piece takes
	mostBegun  = 3
	atOnce     = 2 // files in one process
)

// Maker makes what is asked for. Any number may run, in any number of processes:
// each file is made under a lease by one, and begun again by another where that
// one died.
type Maker struct {
	*Service
	log    *slog.Logger
	piece  int              // bytes of a chunk
	pieced func(number int) // where tests stop the process
}

// NewMaker makes one.
func NewMaker(s *Service, log *slog.Logger) *Maker {
	return &Maker{Service: s, log: log, piece: 1 << 20, pieced: func(int) {}}
}

// Run makes files until ctx ends.
func (m *Maker) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	pruned := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := m.Make(ctx); err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "exports not made", "error", err)
		}
		if time.Since(pruned) < pruneEvery {
			continue
		}
		pruned = time.Now()
		if err := m.Prune(ctx); err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "old exports not removed", "error", err)
		}
	}
}

type due struct{ tenant, export uuid.UUID }

// Make makes what is due now, and returns when it is made or has failed.
func (m *Maker) Make(ctx context.Context) error {
	for {
		list, err := m.due(ctx)
		if err != nil || len(list) == 0 {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, d := range list {
			group.Go(func() error { return m.one(ctx, d) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
}

func (m *Maker) due(ctx context.Context) (list []due, err error) {
	err = m.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, export_id from lookup_due_exports($1, 20)`, m.now())
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d due, err error) {
			return d, row.Scan(&d.tenant, &d.export)
		})
		return err
	})
	return list, err
}

// one makes a file, if nobody else does. What is wrong with the export itself
// fails it for good; anything else leaves it to be begun again.
func (m *Maker) one(ctx context.Context, d due) error {
	w, err := m.claim(ctx, d)
	if err != nil || w == nil {
		return err
	}
	err = w.write(ctx)
	switch {
	case err == nil:
		err = w.finish(ctx)
	case fault.Is(err, fault.Invalid):
		reason := fault.Of(err).Message
		if fields := fault.Of(err).Fields; len(fields) > 0 {
			reason = fields[0].Message
		}
		err = m.fail(ctx, d, w.lease, reason)
	}
	if errors.Is(err, errLost) {
		return nil
	}
	if err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "export left to be begun again", "export", id.Export.Format(d.export), "error", err)
		return nil
	}
	return err
}

// claim leases an export and forgets what was written of it; nil is that there
// is nothing to do for this worker.
func (m *Maker) claim(ctx context.Context, d due) (w *file, err error) {
	lease, now := id.New(), m.now()
	spent := false
	err = m.db.WithTenant(ctx, d.tenant, func(tx pgx.Tx) error {
		w, spent = nil, false
		rows, err := tx.Query(ctx, `
			with mine as (
			    select tenant_id, export_id from exports
			    where tenant_id = $1 and export_id = $2 and state in ('queued', 'running') and next_at <= $3
			    for update skip locked
			)
			update exports e
			set state = 'running', begun = begun + 1, lease = $4, next_at = $5, progress = 0, written = 0, bytes = 0
			from mine
			where e.tenant_id = $1 and e.export_id = $2 and mine.export_id = e.export_id
			returning e.begun > $6, e.asked`, d.tenant, d.export, now, lease, now.Add(leaseFor), mostBegun)
		if err != nil {
			return err
		}
		f := &file{Maker: m, due: d, lease: lease}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (bool, error) { return true, row.Scan(&spent, &f.asked) })
		if err != nil || len(found) == 0 {
			return err
		}
		w = f
		_, err = tx.Exec(ctx, `delete from export_chunks where tenant_id = $1 and export_id = $2`, d.tenant, d.export)
		return err
	})
	if err != nil || w == nil || !spent {
		return w, err
	}
	return nil, m.fail(ctx, d, lease, "It was begun three times, and each time the worker that made it stopped. Ask for a shorter range.")
}

// fail ends an export with what was wrong, in words for people.
func (m *Maker) fail(ctx context.Context, d due, lease uuid.UUID, reason string) error {
	return m.db.WithTenant(ctx, d.tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update exports set state = 'failed', reason = $4, ended_at = $5, lease = null
			where tenant_id = $1 and export_id = $2 and lease = $3`, d.tenant, d.export, lease, reason, m.now())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from export_chunks where tenant_id = $1 and export_id = $2`, d.tenant, d.export); err != nil {
			return err
		}
		return message.Emit(ctx, tx, d.tenant, message.ExportFinished, told{Export: id.Export.Format(d.export), Status: Failed, Reason: reason})
	})
}

// told is what endpoints hear of an export that ended.
type told struct {
	Export string `json:"export"`
	Status State  `json:"status"`
	Rows   int64  `json:"rows,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Prune removes the files whose week is over.
func (m *Maker) Prune(ctx context.Context) error {
	var list []uuid.UUID
	now := m.now()
	err := m.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id from lookup_old_exports($1)`, now)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	if err != nil {
		return err
	}
	for _, tenant := range list {
		err := m.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `delete from exports where tenant_id = $1 and expires_at <= $2`, tenant, now)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
