package web

import (
	"context"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// labels are the names of what a report or a log is about.
type labels map[uuid.UUID]tenants.Named

// labels reads the names of ids; those that a role may not see stay ids.
func (p *Pages) labels(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (labels, error) {
	known := ids[:0:0]
	seen := map[uuid.UUID]bool{uuid.Nil: true}
	for _, u := range ids {
		if !seen[u] {
			seen[u] = true
			known = append(known, u)
		}
	}
	return p.tenants.Names(ctx, tenant, known)
}

// name is what something is called, its id where no name is kept, or "" for
// none. What is gone says so.
func (l labels) name(kind id.Kind, u uuid.UUID) string {
	if u == uuid.Nil {
		return ""
	}
	n, known := l[u]
	if !known {
		return kind.Format(u)
	}
	if n.Gone {
		return n.Name + gone(kind)
	}
	return n.Name
}

func gone(kind id.Kind) string {
	if kind == id.APIKey {
		return " (revoked)"
	}
	return " (deleted)"
}

// group is how a row of a report is called, and the id behind it.
func (l labels) group(by usage.GroupBy, g usage.Group) (name, of, ref string) {
	kind, ok := map[usage.GroupBy]id.Kind{usage.ByCustomer: id.Customer, usage.ByKey: id.APIKey, usage.ByProviderKey: id.ProviderKey}[by]
	switch {
	case g.Rest:
		return "all others", "", ""
	case by == usage.ByOutcome:
		return outcomeWords(usage.Outcome(g.Name)), "", g.Name
	case !ok && g.Name == "":
		return "none stated", "", ""
	case !ok:
		return g.Name, "", g.Name
	case g.ID == uuid.Nil && by == usage.ByProviderKey:
		return "no provider asked", "", ""
	case g.ID == uuid.Nil:
		return "none", "", ""
	}
	if by == usage.ByKey {
		of = l[g.ID].Of
	}
	return l.name(kind, g.ID), of, kind.Format(g.ID)
}
