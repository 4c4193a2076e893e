package tenants

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// like takes their meaning from the wildcards of a pattern.
var like = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Containing is the pattern of what holds text as it stands.
func Containing(text string) string { return "%" + like.Replace(storable(text)) + "%" }

// storable is text without what Postgres takes for no text.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// FindCustomers is Customers for those whose name, e-mail address or external
// id holds text, in whatever case, or whose id is exact.
func (s *Service) FindCustomers(ctx context.Context, tenant uuid.UUID, text string, exact, after uuid.UUID, limit int) (Page[Customer], error) {
	var list []Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+customerColumns+` from customers
			where tenant_id = $1 and removed_at is null and customer_id < $2
			  and (name ilike $3 or email ilike $3 or external_id ilike $3 or customer_id = $4)
			order by customer_id desc limit $5`, tenant, After(after), Containing(text), exact, limit+1)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanCustomer)
		return err
	})
	return PageOf(list, limit, func(c Customer) uuid.UUID { return c.ID }), err
}
