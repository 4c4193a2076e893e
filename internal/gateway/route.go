package gateway

import (
	"cmp"
	"slices"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// candidate is one provider key with the model that it would serve.
type candidate struct {
	*tenants.Route
	model string
	in    wire.Form // in which it is called
	rank  int       // its priority; the first is 1
	group int       // which of an alias's lines it comes from
	share int       // that line's weight
	most  int64     // output that the model can write; 0: not known
}

// routes are what can serve a call, in order.
type routes struct {
	free  []candidate // to try
	all   []candidate // those that cool included
	probe bool        // the one to try cools: a failure begins its bench anew
}

// routesFor are the candidates of a call, in the order in which they are tried.
// Where all of them cool by a guess, a call now and then tries one. A test key
// reaches the practice provider only. A model that no key of the tenant has is
// NotFound; one whose keys were all refused by their provider is Upstream
// upstream_auth_failed; one whose keys all cool is Unavailable
// provider_capacity.
func (s *Server) routesFor(k *caller, call *call) (to routes, err error) {
	var sticky bool
	if to.all, sticky, err = s.usable(k, call); err != nil {
		return routes{}, err
	}
	now := s.Now()
	refused := 0
	for _, c := range to.all {
		switch b, cools := s.health.of(c.Key, c.model).Cools(c.model, now); {
		case !cools:
			to.free = append(to.free, c)
		case b.Source == limits.BenchAuth:
			refused++
		}
	}
	switch {
	case len(to.free) > 0:
		s.order(call, to.free, sticky)
		return to, nil
	case refused == len(to.all):
		return routes{}, refusedKeys(call.model)
	}
	if c, probe, ok := s.trial(k.ctx, k.who.Tenant.ID, to.all); ok {
		to.free, to.probe = []candidate{c}, probe
		return to, nil
	}
	return routes{}, s.capacity(to.all, call.model)
}

// lines are what a name stands for: those of an alias by priority, else the model
// itself on any key.
func (s *Server) lines(k *caller, name string) (list []tenants.AliasCandidate, sticky bool, err error) {
	aliases, err := s.Directory.Aliases(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, false, err
	}
	a, found := aliases[name]
	if !found {
		return []tenants.AliasCandidate{{Model: name, Priority: 1, Weight: 1}}, false, nil
	}
	list = slices.Clone(a.Candidates)
	slices.SortStableFunc(list, func(a, b tenants.AliasCandidate) int { return cmp.Compare(a.Priority, b.Priority) })
	return list, a.Sticky, nil
}

// usable are the keys that serve a call and that their provider accepts, cooling
// or not: of each key and model once. Where a real provider has the model, well
// or not, the practice provider serves no live key.
func (s *Server) usable(k *caller, call *call) (usable []candidate, sticky bool, err error) {
	if k.who.Key.Models != nil && !slices.Contains(k.who.Key.Models, call.model) {
		return nil, false, unknownModel(call.model)
	}
	known, err := s.Directory.Routes(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, false, err
	}
	lines, sticky, err := s.lines(k, call.model)
	if err != nil {
		return nil, false, err
	}
	var found, served bool
	var broken error
	paid := !k.who.Key.Test && slices.ContainsFunc(known, func(r tenants.Route) bool {
		return !r.Endpoint.Provider.Practice && slices.ContainsFunc(lines, func(l tenants.AliasCandidate) bool { return l.Reaches(r) })
	})
	for i, line := range lines {
		for j := range known {
			r := &known[j]
			if !line.Reaches(*r) || paid && r.Endpoint.Provider.Practice || k.who.Key.Test && !r.Endpoint.Provider.Practice {
				continue
			}
			found = true
			in, ok := call.form.reach(r)
			served = served || ok
			switch {
			case !ok:
			case r.Broken != nil:
				broken = r.Broken
			case r.Key.Usable() && !slices.ContainsFunc(usable, func(c candidate) bool { return c.Key.ID == r.Key.ID && c.model == line.Model }):
				usable = append(usable, candidate{Route: r, model: line.Model, in: in, rank: line.Priority, group: i, share: line.Weight})
			}
		}
	}
	switch {
	case len(usable) > 0:
		return usable, sticky, nil
	case broken != nil:
		return nil, false, broken
	case found && !served:
		return nil, false, notServed(call.form, call.model)
	case found:
		return nil, false, refusedKeys(call.model)
	}
	return nil, false, unknownModel(call.model)
}

func refusedKeys(model string) error {
	return fault.New(fault.Upstream, "upstream_auth_failed", "The provider refuses the key that serves "+model+". Whoever runs this service has to renew it.")
}

// candidates are what the limits engine chooses from.
func candidates(list []candidate) []limits.Candidate {
	out := make([]limits.Candidate, len(list))
	for i, c := range list {
		out[i] = limits.Candidate{ProviderKey: c.Key.ID, Model: c.model, Limits: c.LimitsFor(c.model)}
	}
	return out
}
