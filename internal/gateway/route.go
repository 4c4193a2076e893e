package gateway

import (
	"slices"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// routes are the provider keys that serve a model for a caller.
type routes struct {
	free  []tenants.Route // to try, in order
	all   []tenants.Route // those that cool included
	probe bool            // the one to try cools: a failure begins its bench anew
}

// routesFor are the provider keys that serve a model for this caller. Where all
// of them cool by a guess, a call now and then tries one. A test key reaches the
// practice provider only. A model that no key of the tenant has is NotFound;
// one whose keys were all refused by their provider is Upstream
// upstream_auth_failed; one whose keys all cool is Unavailable
// provider_capacity.
func (s *Server) routesFor(k *caller, model string) (to routes, err error) {
	if to.all, err = s.usableRoutes(k, model); err != nil {
		return routes{}, err
	}
	now := s.Now()
	refused := 0
	for _, r := range to.all {
		switch b, cools := s.health.of(r.Key, model).Cools(model, now); {
		case !cools:
			to.free = append(to.free, r)
		case b.Source == limits.BenchAuth:
			refused++
		}
	}
	switch {
	case len(to.free) > 0:
		return to, nil
	case refused == len(to.all):
		return routes{}, refusedKeys(model)
	}
	if r, probe, ok := s.trial(k.ctx, k.who.Tenant.ID, to.all, model); ok {
		to.free, to.probe = []tenants.Route{r}, probe
		return to, nil
	}
	return routes{}, s.capacity(to.all, model)
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
