package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
)

type customerBody struct {
	Name       string `json:"name" required:"true"`
	Email      string `json:"email,omitempty"`
	ExternalID string `json:"external_id,omitempty" description:"Your own id for it; unique"`
}

type customerJSON struct {
	ID          string     `json:"id" example:"cus_01kb0000000000000000000000"`
	Name        string     `json:"name"`
	Email       string     `json:"email,omitempty"`
	ExternalID  string     `json:"external_id,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	SuspendedAt *time.Time `json:"suspended_at" description:"Since when every call is refused, or null"`
}

func customerOf(c tenants.Customer) customerJSON {
	return customerJSON{ID: id.Customer.Format(c.ID), Name: c.Name, Email: c.Email, ExternalID: c.ExternalID, CreatedAt: c.CreatedAt, SuspendedAt: c.SuspendedAt}
}

func addCustomer(s *Server, r *request, _ none, b customerBody) (customerJSON, error) {
	c, err := s.tenants.AddCustomer(r.ctx, r.tenant(), tenants.NewCustomer{Name: b.Name, Email: b.Email, ExternalID: b.ExternalID})
	return customerOf(c), err
}

func getCustomer(s *Server, r *request, _ none, _ none) (customerJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return customerJSON{}, err
	}
	c, err := s.tenants.Customer(r.ctx, r.tenant(), customer)
	return customerOf(c), err
}

func listCustomers(s *Server, r *request, q listQuery, _ none) (page[customerJSON], error) {
	return list(s, r, q, "customers", func(after uuid.UUID, limit int) (tenants.Page[tenants.Customer], error) {
		return s.tenants.Customers(r.ctx, r.tenant(), after, limit)
	}, customerOf)
}
