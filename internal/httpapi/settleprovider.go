package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// checkProvider says what is wrong with what a settlement says of the provider.
// A customer could rest its tenant's provider keys with it, so only management
// keys may.
func (b settleBody) checkProvider(byCustomer bool) (wrong []fault.Field) {
	if n := b.ProviderStatus; n != nil && (*n < 100 || *n > 599) {
		wrong = append(wrong, fault.Field{Pointer: "/provider_status", Code: "out_of_range", Message: "This must be an HTTP status, from 100 to 599."})
	}
	if len(b.RetryAfter) > 200 {
		wrong = append(wrong, fault.Field{Pointer: "/retry_after", Code: "too_long", Message: "A Retry-After has at most 200 characters."})
	}
	wrong = append(wrong, tenants.CheckText("/retry_after", b.RetryAfter)...)
	for pointer, said := range map[string]bool{"/provider_status": b.ProviderStatus != nil, "/retry_after": b.RetryAfter != ""} {
		if said && byCustomer {
			wrong = append(wrong, fault.Field{Pointer: pointer, Code: "not_for_this_kind", Message: "Only management keys say what a provider answered."})
		}
	}
	return wrong
}

// showProvider takes what a settled call shows of the provider key that its
// reservation named, as the gateway's calls do: a failure may rest the key, a
// success ends what was a guess. That cannot fail the settlement.
func (s *Server) showProvider(r *request, e usage.Event, b settleBody) {
	route, found := s.routeOf(r, e.ProviderKey)
	if !found || route.Endpoint.Provider.Practice {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), showWithin)
	defer cancel()
	var changed []tenants.KeyHealth
	var err error
	f, served := b.shows(e, route, s.now())
	switch {
	case served && route.Marked(e.ModelAsked):
		changed, err = s.tenants.ReportSuccess(ctx, r.tenant(), e.ProviderKey, e.ModelAsked, e.StartedAt)
	case f != nil && !route.Key.Knew(e.ModelAsked, *f):
		changed, err = s.tenants.ReportFailure(ctx, r.tenant(), e.ProviderKey, e.ModelAsked, *f)
	}
	if err != nil {
		s.log.WarnContext(ctx, "what a settlement says of a provider key is not stored", "request_id", requestID(r.echo), "error", err.Error())
	}
	if len(changed) > 0 {
		s.directory.RoutesChanged(r.tenant())
	}
}

// showWithin is how long a settlement may take longer for what it shows of a
// key.
const showWithin = 2 * time.Second

func (s *Server) routeOf(r *request, key uuid.UUID) (tenants.Route, bool) {
	if key == uuid.Nil {
		return tenants.Route{}, false
	}
	routes, err := s.directory.Routes(r.ctx, r.tenant())
	i := slices.IndexFunc(routes, func(x tenants.Route) bool { return x.Key.ID == key })
	if err != nil || i < 0 {
		return tenants.Route{}, false
	}
	return routes[i], true
}

// shows is what failed by what the settlement says, or that the provider served
// the call; neither, where it says nothing of the provider. The status decides
// where there is one. Without a model only what is about the whole key counts.
func (b settleBody) shows(e usage.Event, route tenants.Route, now time.Time) (f *limits.Failure, served bool) {
	status := 0
	switch outcome := cmp.Or(e.Settled, e.Outcome); {
	case b.ProviderStatus != nil:
		status = *b.ProviderStatus
	case outcome == usage.OK:
		return nil, true
	case outcome == usage.ProviderLimited:
		status = http.StatusTooManyRequests
	case outcome != usage.ProviderError:
		return nil, false
	}
	if status != 0 && status < http.StatusBadRequest {
		return nil, status < http.StatusMultipleChoices
	}
	f = &limits.Failure{Sent: e.StartedAt, At: now, Status: status, Daily: route.Key.Daily(e.ModelAsked), Zone: route.Key.Zone, Local: route.Local}
	f.Wait, _ = catalogue.RetryAfter(b.RetryAfter, now, limits.LongestWait)
	if e.ModelAsked == "" && !f.WholeKey() {
		return nil, false
	}
	return f, false
}
