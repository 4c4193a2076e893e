package billing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/tenants"
)

// Onboarding is a customer with all that its first call needs.
type Onboarding struct {
	Customer tenants.NewCustomer
	Plan     uuid.UUID
	Key      tenants.NewAPIKey // its customer is the new one
	Asked    time.Time         // when the form was opened that asks for it
}

// Onboard makes a customer, puts it on the published version of a plan and
// makes its key, all of it or nothing. A form that was opened before another
// one was taken, be it itself, is a Conflict already_made.
func (s *Service) Onboard(ctx context.Context, people *tenants.Service, tenant uuid.UUID, o Onboarding) (tenants.IssuedKey, error) {
	var k tenants.IssuedKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := people.TakeSetupTx(ctx, tx, tenant, "key", o.Asked); err != nil {
			return err
		}
		c, err := people.AddCustomerTx(ctx, tx, tenant, o.Customer)
		if err != nil {
			return err
		}
		if _, err := s.subscribe(ctx, tx, tenant, c.ID, o.Plan); err != nil {
			return err
		}
		n := o.Key
		n.Kind, n.Customer = tenants.ForCustomer, c.ID
		k, err = people.AddAPIKeyTx(ctx, tx, tenant, n)
		return err
	})
	return k, conflict(err)
}
