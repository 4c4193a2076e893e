package tenants

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
)

// CustomerChange is what changes of a customer; nil leaves it as it is, and an
// empty e-mail address or external id clears it.
type CustomerChange struct {
	Name       *string
	Email      *string
	ExternalID *string
}

func (c CustomerChange) check() error {
	var wrong []fault.Field
	if c.Name != nil {
		wrong = CheckName("/name", *c.Name)
	}
	if c.Email != nil && *c.Email != "" {
		wrong = append(wrong, CheckEmail("/email", *c.Email)...)
	}
	if c.ExternalID != nil && *c.ExternalID != "" {
		wrong = append(wrong, CheckName("/external_id", *c.ExternalID)...)
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// apply changes x and says what of it was changed, from what to what.
func (c CustomerChange) apply(x *Customer) map[string][2]string {
	changed := map[string][2]string{}
	for _, f := range []struct {
		name string
		to   *string
		at   *string
	}{{"name", c.Name, &x.Name}, {"email", c.Email, &x.Email}, {"external_id", c.ExternalID, &x.ExternalID}} {
		if f.to != nil && *f.to != *f.at {
			changed[f.name] = [2]string{*f.at, *f.to}
			*f.at = *f.to
		}
	}
	return changed
}

// ChangeCustomer changes how a customer is called and reached. Nothing hangs on
// it. A taken external id is a Conflict.
func (s *Service) ChangeCustomer(ctx context.Context, tenant, customer uuid.UUID, c CustomerChange) (Customer, error) {
	if c.Email != nil {
		trimmed := strings.TrimSpace(*c.Email)
		c.Email = &trimmed
	}
	if err := c.check(); err != nil {
		return Customer{}, err
	}
	var x Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if x, err = lockCustomer(ctx, tx, tenant, customer); err != nil {
			return err
		}
		changed := c.apply(&x)
		if len(changed) == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `
			update customers set name = $3, email = nullif($4, ''), external_id = nullif($5, '')
			where tenant_id = $1 and customer_id = $2`, tenant, customer, x.Name, x.Email, x.ExternalID); err != nil {
			return err
		}
		if err := tellCustomer(ctx, tx, tenant, message.CustomerChanged, x); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "customer.changed", id.Customer.Format(customer), changed)
	})
	return x, conflict(err)
}

// ErasedName is how an erased customer is called.
const ErasedName = "Erased customer"

// EraseCustomer takes everything personal out of a customer: its name, address
// and external id, and by each of also, in the same transaction, what others keep
// of persons. It is suspended; usage, keys and invoices stay, without a name. It
// cannot be taken back, and again it changes nothing but calls that came since.
func (s *Service) EraseCustomer(ctx context.Context, tenant, customer uuid.UUID, also ...func(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error) (Customer, error) {
	var x Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if x, err = lockCustomer(ctx, tx, tenant, customer); err != nil {
			return err
		}
		for _, erase := range also {
			if err := erase(ctx, tx, tenant, customer); err != nil {
				return err
			}
		}
		if x.SuspendedAt == nil {
			now := s.now()
			x.SuspendedAt = &now
		}
		x.Name, x.Email, x.ExternalID = ErasedName, "", ""
		if _, err := tx.Exec(ctx, `
			update customers set name = $3, email = null, external_id = null, suspended_at = $4
			where tenant_id = $1 and customer_id = $2`, tenant, customer, x.Name, x.SuspendedAt); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "customer.erased", id.Customer.Format(customer), nil)
	})
	return x, err
}

// SuspendCustomer refuses every call of a customer from now on, whatever its
// plan and keys; within a second everywhere. Again it changes nothing.
func (s *Service) SuspendCustomer(ctx context.Context, tenant, customer uuid.UUID) (Customer, error) {
	return s.suspension(ctx, tenant, customer, true)
}

// ResumeCustomer takes a suspension back. What was used stays used.
func (s *Service) ResumeCustomer(ctx context.Context, tenant, customer uuid.UUID) (Customer, error) {
	return s.suspension(ctx, tenant, customer, false)
}

func (s *Service) suspension(ctx context.Context, tenant, customer uuid.UUID, suspend bool) (Customer, error) {
	var x Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if x, err = lockCustomer(ctx, tx, tenant, customer); err != nil || (x.SuspendedAt != nil) == suspend {
			return err
		}
		action, told := "customer.resumed", message.CustomerResumed
		x.SuspendedAt = nil
		if suspend {
			now := s.now()
			action, told, x.SuspendedAt = "customer.suspended", message.CustomerSuspended, &now
		}
		if _, err := tx.Exec(ctx, `
			update customers set suspended_at = $3
			where tenant_id = $1 and customer_id = $2`, tenant, customer, x.SuspendedAt); err != nil {
			return err
		}
		if err := tellCustomer(ctx, tx, tenant, told, x); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, action, id.Customer.Format(customer), map[string]string{"name": x.Name})
	})
	return x, err
}

// lockCustomer reads a customer that no other transaction changes, or holds, until
// this one ends. Rows that name it can be written meanwhile.
func lockCustomer(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (Customer, error) {
	if _, err := tx.Exec(ctx, `select from customers where tenant_id = $1 and customer_id = $2 for no key update`, tenant, customer); err != nil {
		return Customer{}, err
	}
	return ReadCustomer(ctx, tx, tenant, customer)
}
