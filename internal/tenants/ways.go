package tenants

import (
	"slices"
	"time"

	"weir/internal/limits"
)

// WayState is whether a call may go a way now.
type WayState string

// The states of a way.
const (
	WayReady    WayState = "ready"
	WayCooling  WayState = "cooling"  // until Way.Bench ends
	WayRefused  WayState = "refused"  // the provider refuses the key
	WayBroken   WayState = "broken"   // the key's secret does not open
	WayPractice WayState = "practice" // the practice provider serves only where no real one can
)

// Way is where a call may go, and whether it may now.
type Way struct {
	Target
	State WayState
	Bench limits.Bench // that runs; zero: none
}

// Ways are the targets of a call with how they stand at an instant, in their
// order.
func Ways(targets []Target, now time.Time) []Way {
	paid := slices.ContainsFunc(targets, func(t Target) bool {
		return !t.Route.Endpoint.Provider.Practice && t.Route.Broken == nil && t.Route.Key.Usable()
	})
	out := make([]Way, len(targets))
	for i, t := range targets {
		out[i] = Way{Target: t, State: WayReady}
		bench, cools := t.Route.Key.Cools(t.Model, now)
		out[i].Bench = bench
		switch {
		case t.Route.Broken != nil:
			out[i].State = WayBroken
		case !t.Route.Key.Usable() || cools && bench.Source == limits.BenchAuth:
			out[i].State = WayRefused
		case paid && t.Route.Endpoint.Provider.Practice:
			out[i].State = WayPractice
		case cools:
			out[i].State = WayCooling
		}
	}
	return out
}

// AskedNames are what calls of a tenant may ask for: its aliases, and the models
// that its provider keys serve. Sorted, each once.
func AskedNames(aliases map[string]Alias, routes []Route) []string {
	var names []string
	for name := range aliases {
		names = append(names, name)
	}
	for _, r := range routes {
		names = append(names, r.Key.Models...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
