package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
)

// LimitOwner is what a limit row belongs to.
type LimitOwner string

// The owners of limits.
const (
	OwnedByTenant      LimitOwner = "tenant"
	OwnedByPlanVersion LimitOwner = "plan_version"
	OwnedByAPIKey      LimitOwner = "api_key"
	OwnedByProviderKey LimitOwner = "provider_key"
	OwnedByPool        LimitOwner = "pool"
	OwnedByOverride    LimitOwner = "override"
)

// AddLimits stores the limits of an owner in their order and returns them with
// their ids. They were checked before; the caller owns the transaction.
func AddLimits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, owner LimitOwner, ownerID uuid.UUID, list []limits.Limit) ([]limits.Limit, error) {
	out := make([]limits.Limit, len(list))
	for i, l := range list {
		l.ID = id.New()
		weights, err := json.Marshal(l.Weights)
		if err != nil {
			return nil, fmt.Errorf("weights: %w", err)
		}
		if l.Weights == nil {
			weights = []byte("{}")
		}
		models := l.Models
		if models == nil {
			models = []string{}
		}
		_, err = tx.Exec(ctx, `
			insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy,
			                    amount, burst, models, each_model, weights, mode, outage, scope)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			tenant, l.ID, string(owner), ownerID, i, string(l.Dimension), string(l.Window), string(l.Policy),
			l.Amount, l.Burst, models, l.EachModel, weights, string(l.Mode), string(l.Outage), storedScope(l))
		if err != nil {
			return nil, err
		}
		out[i] = l
	}
	return out, nil
}

// storedScope is what a row says of whose the limit is; the owner says the rest.
func storedScope(l limits.Limit) string {
	if l.EachEndUser() {
		return string(limits.ScopeEndUser)
	}
	return "owner"
}

// LimitsOf reads the limits of several owners of one kind, in the tenant's zones.
// The scope is the caller's to fill in, with Placed.
func LimitsOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, owner LimitOwner, ids []uuid.UUID) (map[uuid.UUID][]limits.Limit, error) {
	rows, err := tx.Query(ctx, `
		select l.owner_id, l.limit_id, l.dimension, l.win, l.policy, l.amount, l.burst, l.models, l.each_model, l.weights, l.mode, l.outage, l.scope, t.zone, t.past_zones
		from limits l
		join tenants t on t.tenant_id = l.tenant_id
		where l.tenant_id = $1 and l.owner_kind = $2 and l.owner_id = any($3)
		order by l.owner_id, l.position`, tenant, string(owner), ids)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]limits.Limit{}
	var l limits.Limit
	var ownerID uuid.UUID
	var weights []byte
	var past []limits.PastZone
	var scope string
	_, err = pgx.ForEachRow(rows, []any{
		&ownerID, &l.ID, &l.Dimension, &l.Window, &l.Policy, &l.Amount, &l.Burst, &l.Models, &l.EachModel, &weights, &l.Mode, &l.Outage, &scope, &l.Zone, &past,
	}, func() error {
		l.Weights, l.PastZones, l.Scope = nil, slices.Clone(past), limits.Scope{}
		if scope == string(limits.ScopeEndUser) {
			l.Scope.Kind = limits.ScopeEndUser
		}
		if len(weights) > 2 {
			if err := json.Unmarshal(weights, &l.Weights); err != nil {
				return fmt.Errorf("limit %s: %w", l.ID, err)
			}
		}
		out[ownerID] = append(out[ownerID], l)
		return nil
	})
	return out, err
}

// Placed returns the limits as they stand at a scope; those for each end user,
// for each end user there.
func Placed(list []limits.Limit, scope limits.Scope) []limits.Limit {
	out := make([]limits.Limit, len(list))
	for i, l := range list {
		each := l.EachEndUser()
		if l.Scope = scope; each {
			l.Scope.Kind = limits.ScopeEndUser
		}
		out[i] = l
	}
	return out
}

// InZones changes list so that its days are those of other zones, and returns
// it.
func InZones(list []limits.Limit, z limits.Zones) []limits.Limit {
	for i := range list {
		list[i].Zone, list[i].PastZones = z.Zone, z.Past
	}
	return list
}
