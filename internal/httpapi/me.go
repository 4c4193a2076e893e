package httpapi

import (
	"weir/internal/id"
)

type meJSON struct {
	Tenant meTenant `json:"tenant"`
	Key    keyJSON  `json:"api_key"`
}

type meTenant struct {
	ID       string `json:"id" example:"ten_01kb0000000000000000000000"`
	Name     string `json:"name"`
	Zone     string `json:"zone" description:"IANA time zone in which the tenant's days begin" example:"Europe/Berlin"`
	Currency string `json:"currency" example:"USD"`
}

func me(_ *Server, r *request, _ none, _ none) (meJSON, error) {
	t := r.caller.Tenant
	return meJSON{
		Tenant: meTenant{ID: id.Tenant.Format(t.ID), Name: t.Name, Zone: t.Zone, Currency: t.Currency},
		Key:    keyOf(r.caller.Key),
	}, nil
}
