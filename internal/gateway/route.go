package gateway

import (
	"slices"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// routesFor are the provider keys that serve a model for this caller, in the
// order to try them. A test key reaches the practice provider only. A model
// that no key of the tenant has is NotFound; one whose keys were all refused by
// their provider is Upstream upstream_auth_failed.
func (s *Server) routesFor(k *caller, model string) ([]tenants.Route, error) {
	if k.who.Key.Models != nil && !slices.Contains(k.who.Key.Models, model) {
		return nil, unknownModel(model)
	}
	all, err := s.Directory.Routes(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, err
	}
	var usable []tenants.Route
	known := false
	var broken error
	for _, r := range all {
		if !r.Key.Serves(model) || k.who.Key.Test && !r.Endpoint.Provider.Practice {
			continue
		}
		known = true
		switch {
		case r.Broken != nil:
			broken = r.Broken
		case r.Key.Usable():
			usable = append(usable, r)
		}
	}
	switch {
	case len(usable) > 0:
		return withoutPractice(usable), nil
	case broken != nil:
		return nil, broken
	case known:
		return nil, fault.New(fault.Upstream, "upstream_auth_failed", "The provider refuses the key that serves "+model+". Whoever runs this service has to renew it.")
	}
	return nil, unknownModel(model)
}

// withoutPractice drops the practice provider where a real one serves too: the
// routes of one call are all real or all practice.
func withoutPractice(routes []tenants.Route) []tenants.Route {
	i := slices.IndexFunc(routes, func(r tenants.Route) bool { return r.Endpoint.Provider.Practice }) // they stand last
	if i > 0 {
		return routes[:i]
	}
	return routes
}

func candidates(routes []tenants.Route, model string) []limits.Candidate {
	out := make([]limits.Candidate, len(routes))
	for i, r := range routes {
		out[i] = limits.Candidate{ProviderKey: r.Key.ID, Model: model, Limits: r.Limits}
	}
	return out
}
