package httpapi

import (
	"encoding/json"

	"weir/internal/billing"
	"weir/internal/exports"
	"weir/internal/id"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// clearable is a text member of a change: absent leaves what is there, null or
// an empty text clears it.
type clearable string

const cleared clearable = "\x00"

// UnmarshalJSON is called for null too.
func (c *clearable) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if *c = clearable(s); s == "" {
		*c = cleared
	}
	return nil
}

// to is what the member changes to; nil leaves it.
func (c clearable) to() *string {
	s := string(c)
	switch c {
	case "":
		return nil
	case cleared:
		s = ""
	}
	return &s
}

type customerChangeBody struct {
	Name       *string   `json:"name,omitempty"`
	Email      clearable `json:"email,omitempty" description:"null clears it"`
	ExternalID clearable `json:"external_id,omitempty" description:"Your own id for it; unique; null clears it"`
}

func changeCustomer(s *Server, r *request, _ none, b customerChangeBody) (customerJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return customerJSON{}, err
	}
	c, err := s.tenants.ChangeCustomer(r.ctx, r.tenant(), customer, tenants.CustomerChange{Name: b.Name, Email: b.Email.to(), ExternalID: b.ExternalID.to()})
	return customerOf(c), err
}

func suspendCustomer(s *Server, r *request, _ none, _ none) (customerJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return customerJSON{}, err
	}
	c, err := s.tenants.SuspendCustomer(r.ctx, r.tenant(), customer)
	return customerOf(c), err
}

func resumeCustomer(s *Server, r *request, _ none, _ none) (customerJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return customerJSON{}, err
	}
	c, err := s.tenants.ResumeCustomer(r.ctx, r.tenant(), customer)
	return customerOf(c), err
}

func eraseCustomer(s *Server, r *request, _ none, _ none) (customerJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return customerJSON{}, err
	}
	c, err := s.tenants.EraseCustomer(r.ctx, r.tenant(), customer, usage.Erase, quotes.Forget, billing.Forget, portal.Forget, exports.Forget)
	return customerOf(c), err
}
