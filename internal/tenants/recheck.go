package tenants

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
)

const (
	checksEvery  = time.Second     // how often it is looked whether a check is due
	checkLease   = 2 * time.Minute // how long one replica has for a check
	checksAtOnce = 8
	checksBatch  = 32
)

// RunChecks makes the live checks that are due until ctx ends: of keys that were
// refused, and of what rests for want of credit or of a right. No call of a
// customer does that. Replicas share the work.
func (s *Service) RunChecks(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(checksEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := s.CheckDue(ctx); err != nil && ctx.Err() == nil {
			log.Warn("provider keys not checked", "error", err.Error())
		}
	}
}

// CheckDue makes the checks that are due now and says how many this replica
// made. Each is taken under a lease, so that one replica makes it; where that
// one dies, it is due again once the lease has run out.
func (s *Service) CheckDue(ctx context.Context) (made int, err error) {
	due, err := s.dueChecks(ctx)
	if err != nil {
		return 0, err
	}
	var group errgroup.Group // one that fails stops none of the others
	group.SetLimit(checksAtOnce)
	took := make([]bool, len(due))
	for i, d := range due {
		group.Go(func() error {
			h, err := s.take(ctx, d)
			if err != nil || h == nil {
				return err
			}
			took[i] = true
			return s.recheck(ctx, d.tenant, *h)
		})
	}
	err = group.Wait()
	for _, t := range took {
		if t {
			made++
		}
	}
	return made, err
}

type dueCheck struct {
	tenant, key uuid.UUID
	model       string
}

func (s *Service) dueChecks(ctx context.Context) (out []dueCheck, err error) {
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, provider_key_id, model from lookup_due_checks($1, $2)`, s.now(), checksBatch)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dueCheck, err error) {
			err = row.Scan(&d.tenant, &d.key, &d.model)
			return d, err
		})
		return err
	})
	return out, err
}

// take leases a check; nil is that another replica has it, or nobody needs it.
func (s *Service) take(ctx context.Context, d dueCheck) (taken *KeyHealth, err error) {
	now := s.now().UTC().Truncate(time.Microsecond)
	err = s.db.WithTenant(ctx, d.tenant, func(tx pgx.Tx) error {
		taken = nil
		list, err := lockHealth(ctx, tx, d.tenant, []uuid.UUID{d.key}, d.model)
		if err != nil || len(list) == 0 || list[0].CheckAt == nil || list[0].CheckAt.After(now) {
			return err
		}
		h, until := list[0], now.Add(checkLease)
		h.CheckAt = &until
		if _, err := readProviderKey(ctx, tx, d.tenant, d.key); fault.Is(err, fault.NotFound) || err == nil && !h.Bench.Runs(now) {
			return clearHealth(ctx, tx, d.tenant, h, h.Checks) // removed, or over by itself
		} else if err != nil {
			return err
		}
		taken = &h
		return writeHealth(ctx, tx, d.tenant, &h)
	})
	return taken, err
}

// recheck makes one check and stores what it said.
func (s *Service) recheck(ctx context.Context, tenant uuid.UUID, h KeyHealth) error {
	k, e, err := s.Endpoint(ctx, tenant, h.Key)
	if err != nil {
		return err
	}
	if h.Bench.Source == limits.BenchAuth {
		return s.storeCheck(ctx, tenant, h, s.verified(ctx, k, e), nil)
	}
	return s.storeCheck(ctx, tenant, h, k, s.client.Try(ctx, e, h.CheckModel))
}

// storeCheck ends the bench of what is well; what is refused again is benched
// anew, and looked at later.
func (s *Service) storeCheck(ctx context.Context, tenant uuid.UUID, h KeyHealth, k ProviderKey, tried error) error {
	now := s.now().UTC().Truncate(time.Microsecond)
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		list, err := lockHealth(ctx, tx, tenant, []uuid.UUID{h.Key}, h.Model)
		if err != nil || len(list) == 0 || list[0].Version != h.Version {
			return err // somebody was faster, with something newer
		}
		h := list[0]
		auth := h.Bench.Source == limits.BenchAuth
		if auth && (k.Status == Active || k.Status == Invalid) {
			if err := writeStatus(ctx, tx, tenant, k); err != nil {
				return err
			}
		}
		if auth && k.Status == Active || !auth && tried == nil {
			if err := clearHealth(ctx, tx, tenant, h, h.Checks+1); err != nil {
				return err
			}
			if err := tellBench(ctx, tx, tenant, message.ProviderKeyRecovered, h, h.Bench); err != nil {
				return err
			}
			return Audit(ctx, tx, tenant, "provider_key.recovered", id.ProviderKey.Format(h.Key), map[string]string{"model": h.Model, "was": string(h.Bench.Reason)})
		}
		h.Checks++
		if wait, ok := limits.CheckAfter(h.Bench.Source, h.Checks); ok {
			at := now.Add(wait)
			h.CheckAt = &at
		}
		if !auth && fault.Of(tried).Code == "provider_key_refused" {
			h.Bench = h.Bench.Again(now)
		}
		return writeHealth(ctx, tx, tenant, &h)
	})
}

// writeStatus stores what a check said of a key.
func writeStatus(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k ProviderKey) error {
	_, err := tx.Exec(ctx, `
		update provider_keys set status = $3, status_reason = $4, models = $5, verified_at = $6
		where tenant_id = $1 and provider_key_id = $2 and removed_at is null and status <> 'disabled'`,
		tenant, k.ID, string(k.Status), k.StatusReason, k.Models, k.VerifiedAt)
	return err
}

// checked ends the refusal of a key that a check found well.
func checked(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k ProviderKey) error {
	if k.Status != Active {
		return nil
	}
	list, err := lockHealth(ctx, tx, tenant, []uuid.UUID{k.ID}, EveryModel)
	for _, h := range list {
		if err == nil && h.Bench.Source == limits.BenchAuth {
			err = clearHealth(ctx, tx, tenant, h, h.Checks)
		}
	}
	return err
}
