package quotes

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// ofCustomer are the quotes that a customer was sent, or came of.
const ofCustomer = `(
	select q.quote_id from quotes q
	where q.tenant_id = $1 and (q.customer_id = $2 or exists (
	    select from quote_versions v where v.tenant_id = q.tenant_id and v.quote_id = q.quote_id and v.customer_id = $2)))`

// Forget takes names, addresses and what was written to and by a customer's people
// out of its quotes, in the transaction that erases the customer, and deletes the
// mail to them and the webhook messages that name them. What could be accepted yet is withdrawn; terms and results stay.
func Forget(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	rows, err := tx.Query(ctx, `
		select quote_id from quotes where tenant_id = $1 and quote_id in `+ofCustomer+` order by quote_id for update`, tenant, customer)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	named := []string{id.Customer.Format(customer)}
	for _, quote := range list {
		named = append(named, id.Quote.Format(quote))
	}
	if err := message.Forget(ctx, tx, tenant, named...); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		delete from mails
		where tenant_id = $1 and recipient in (
		    select email from customers where tenant_id = $1 and customer_id = $2 and email is not null
		    union select to_email from quote_versions where tenant_id = $1 and quote_id in `+ofCustomer+`
		    union select decided_email from quote_versions where tenant_id = $1 and quote_id in `+ofCustomer+`)`, tenant, customer); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update quote_versions
		set to_name = $3, to_email = '', to_company = '', note = '', decided_name = '', decided_email = '', decline_reason = '', state = case state when 'draft' then 'discarded' else state end
		where tenant_id = $1 and quote_id in `+ofCustomer, tenant, customer, tenants.ErasedName); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update quotes
		set status = case when status in ('draft', 'sent', 'viewed') then 'withdrawn' else status end
		where tenant_id = $1 and quote_id in `+ofCustomer, tenant, customer)
	return err
}
