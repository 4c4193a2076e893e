package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
)

// Customer is whom the tenant serves.
type Customer struct {
	ID          uuid.UUID
	Name        string
	Email       string // "" none
	ExternalID  string // the tenant's own name for it; "" none
	CreatedAt   time.Time
	SuspendedAt *time.Time
}

// NewCustomer is what a customer starts from.
type NewCustomer struct {
	ID         uuid.UUID // chosen by a caller who may ask twice; zero: a new one
	Name       string
	Email      string
	ExternalID string
}

func (n NewCustomer) check() error {
	wrong := CheckName("/name", n.Name)
	if n.Email != "" {
		wrong = append(wrong, CheckEmail("/email", n.Email)...)
	}
	if n.ExternalID != "" {
		wrong = append(wrong, CheckName("/external_id", n.ExternalID)...)
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// AddCustomer makes a customer. A taken external id is a Conflict.
func (s *Service) AddCustomer(ctx context.Context, tenant uuid.UUID, n NewCustomer) (Customer, error) {
	var c Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		c, err = s.AddCustomerTx(ctx, tx, tenant, n)
		return err
	})
	return c, err
}

// AddCustomerTx is AddCustomer for a caller who owns the transaction.
func (s *Service) AddCustomerTx(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n NewCustomer) (Customer, error) {
	if err := n.check(); err != nil {
		return Customer{}, err
	}
	if n.ID == uuid.Nil {
		n.ID = id.New()
	}
	c := Customer{ID: n.ID, Name: n.Name, Email: strings.TrimSpace(n.Email), ExternalID: n.ExternalID, CreatedAt: s.now().UTC().Truncate(time.Microsecond)}
	_, err := tx.Exec(ctx, `
		insert into customers (tenant_id, customer_id, name, email, external_id, created_at)
		values ($1, $2, $3, nullif($4, ''), nullif($5, ''), $6)`,
		tenant, c.ID, c.Name, c.Email, c.ExternalID, c.CreatedAt)
	if err != nil {
		return c, conflict(err)
	}
	if err := tellCustomer(ctx, tx, tenant, message.CustomerCreated, c); err != nil {
		return c, err
	}
	return c, Audit(ctx, tx, tenant, "customer.created", id.Customer.Format(c.ID), map[string]string{"name": c.Name})
}

const customerColumns = `customer_id, name, coalesce(email, ''), coalesce(external_id, ''), created_at, suspended_at`

func scanCustomer(row pgx.CollectableRow) (c Customer, err error) {
	err = row.Scan(&c.ID, &c.Name, &c.Email, &c.ExternalID, &c.CreatedAt, &c.SuspendedAt)
	return c, err
}

// Customer reads one customer.
func (s *Service) Customer(ctx context.Context, tenant, customer uuid.UUID) (Customer, error) {
	var c Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		c, err = ReadCustomer(ctx, tx, tenant, customer)
		return err
	})
	return c, err
}

// ReadCustomer is Customer for a caller who owns the transaction.
func ReadCustomer(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (Customer, error) {
	rows, err := tx.Query(ctx, `
		select `+customerColumns+` from customers
		where tenant_id = $1 and customer_id = $2 and removed_at is null`, tenant, customer)
	if err != nil {
		return Customer{}, err
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanCustomer)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, NotFound("customer")
	}
	return c, err
}

// HoldCustomer keeps a customer as it is, not erased above all, until the caller's
// transaction ends; any number may hold it. It is taken before what hangs on the
// customer is locked, so that nobody waits for each other in a circle.
func HoldCustomer(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	_, err := tx.Exec(ctx, `select from customers where tenant_id = $1 and customer_id = $2 for share`, tenant, customer)
	return err
}

// Customers lists customers, newest first, after an id.
func (s *Service) Customers(ctx context.Context, tenant, after uuid.UUID, limit int) (Page[Customer], error) {
	var list []Customer
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+customerColumns+` from customers
			where tenant_id = $1 and removed_at is null and customer_id < $2
			order by customer_id desc limit $3`, tenant, After(after), limit+1)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanCustomer)
		return err
	})
	return PageOf(list, limit, func(c Customer) uuid.UUID { return c.ID }), err
}
