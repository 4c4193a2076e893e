package exports

import (
	"context"
	"encoding/hex"

	"weir/internal/id"
	"weir/internal/tenants"
)

var auditHead = []string{
	"at", "position", "entry", "actor_kind", "actor", "email", "credential", "role", "ip", "request", "action", "object", "difference", "hash", "hash_before",
}

// writeAudit writes the audit's entries of the range in the order of their chain:
// the hash of each stands in the next one, so that a missing row shows.
func (f *file) writeAudit(ctx context.Context) error {
	if err := f.sheet.head(auditHead); err != nil {
		return err
	}
	span, after := f.what.To.Sub(f.what.From).Seconds(), int64(0)
	for {
		page, err := f.tenants.AuditEntries(ctx, f.tenant, f.what.From, f.what.To, after, pageRows)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := f.row(f.auditRow(e)); err != nil {
				return err
			}
		}
		if len(page) < pageRows {
			return nil
		}
		last := page[len(page)-1]
		after = last.Position
		if err := f.keepFull(ctx, last.At.Sub(f.what.From).Seconds()/span); err != nil {
			return err
		}
	}
}

func (f *file) auditRow(e tenants.AuditEntry) []any {
	actor := id.User.Format(e.Actor.ID)
	if e.Actor.Kind == "api_key" {
		actor = id.APIKey.Format(e.Actor.ID)
	}
	return []any{
		f.at(e.At), e.Position, id.Audit.Format(e.ID), e.Actor.Kind, actor, e.Email, e.Actor.Credential, e.Actor.Role, e.Actor.IP,
		id.Request.Format(e.Actor.RequestID), e.Action, e.Object, string(e.Difference), hex.EncodeToString(e.Hash), hex.EncodeToString(e.Before),
	}
}
