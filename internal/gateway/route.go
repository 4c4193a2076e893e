package gateway

import (
	"slices"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// routesFor are the provider keys that serve a model for this caller: those to
// try, in order, and all of them, those that cool included. A test key reaches
// the practice provider only. A model that no key of the tenant has is NotFound;
// one whose keys were all refused by their provider is Upstream
// upstream_auth_failed; one whose keys all cool is Unavailable
// provider_capacity.
func (s *Server) routesFor(k *caller, model string) (free, all []tenants.Route, err error) {
	if all, err = s.usableRoutes(k, model); err != nil {
		return nil, nil, err
	}
	now := s.Now()
	refused := 0
	for _, r := range all {
		switch b, cools := s.health.of(r.Key, model).Cools(model, now); {
		case !cools:
			free = append(free, r)
		case b.Source == limits.BenchAuth:
			refused++
		}
	}
	switch {
	case len(free) > 0:
		return free, all, nil
	case refused == len(all):
		return nil, nil, refusedKeys(model)
	}
	return nil, nil, s.capacity(all, model)
}

// usableRoutes are the keys that serve a model and that their provider accepts,
// cooling or not.
func (s *Server) usableRoutes(k *caller, model string) ([]tenants.Route, error) {
	if k.who.Key.Models != nil && !slices.Contains(k.who.Key.Models, model) {
		return nil, unknownModel(model)
	}
	known, err := s.Directory.Routes(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, err
	}
	var usable []tenants.Route
	found := false
	var broken error
	for _, r := range known {
		if !r.Key.Serves(model) || k.who.Key.Test && !r.Endpoint.Provider.Practice {
			continue
		}
		found = true
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
	case found:
		return nil, refusedKeys(model)
	}
	return nil, unknownModel(model)
}

func refusedKeys(model string) error {
	return fault.New(fault.Upstream, "upstream_auth_failed", "The provider refuses the key that serves "+model+". Whoever runs this service has to renew it.")
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
		out[i] = limits.Candidate{ProviderKey: r.Key.ID, Model: model, Limits: r.LimitsFor(model)}
	}
	return out
}
