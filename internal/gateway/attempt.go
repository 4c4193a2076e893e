package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/usage"
)

// next is where a call may go on after an attempt failed.
type next int

const (
	never         next = iota // it has been answered, or is wrong itself
	otherKey                  // 401, 402, 403, 404, 429: this key, or its account
	otherProvider             // 5xx, timeouts: whoever serves it
)

// failure is why an attempt did not serve the call, and what the client is told
// if nothing else does.
type failure struct {
	err       error
	status    int // as the provider meant it; 0: no answer
	outcome   usage.Outcome
	tokens    limits.Tokens
	estimated string
	next      next
	unsent    bool // the provider was not called at all
}

// try is one attempt at a candidate.
type try struct {
	sent   time.Time
	status int    // the provider's; 0: no answer
	model  string // that it says it served; "": it says none
	apart  bool   // it costs something else than the price of its tokens
	tier   wire.Tier
	watch  *watchdog
	ctx    context.Context
}

// attempt sends the call to the candidate and passes its answer on. nil: the
// client has its answer, and the call is settled.
func (x *exchange) attempt() *failure {
	ctx, cancel := context.WithCancelCause(x.ctx)
	defer cancel(nil)
	x.try = &try{sent: x.s.Now().UTC().Truncate(time.Microsecond), ctx: ctx, watch: watch(cancel, x.s.Timeouts.from(x.since, x.s.Now()))}
	defer x.try.watch.stop()
	defer context.AfterFunc(x.k.ctx, x.try.watch.clientLeft)()
	defer context.AfterFunc(x.s.Halt, func() { cancel(errHalted) })()
	body, header, err := x.call.forward(x.at)
	if err != nil { // others may be told what this one cannot
		return &failure{err: err, outcome: usage.ClientError, next: otherKey, unsent: true}
	}
	x.try.tier, x.try.apart = x.call.asksApart(x.at)
	resp, err := x.s.Client.Do(ctx, x.at.Endpoint, http.MethodPost, formAt(x.at.in).path, header, newBody(body))
	if err != nil {
		return x.lost(err)
	}
	defer resp.Body.Close()
	x.try.status = resp.StatusCode
	x.try.watch.progress()
	switch {
	case resp.StatusCode != http.StatusOK:
		return x.rejected(resp)
	case isStream(resp) && x.call.stream:
		return x.stream(resp)
	case x.call.stream && !x.call.form.media:
		return x.noStream(resp)
	case x.call.form.media && !isJSON(resp):
		return x.raw(resp)
	}
	return x.whole(resp)
}

// lost is an attempt without an answer, or without all of it: the client left,
// or the provider failed.
func (x *exchange) lost(err error) *failure {
	cause := context.Cause(x.try.ctx)
	if errors.Is(cause, errClientGone) {
		return &failure{err: x.k.ctx.Err(), outcome: usage.Aborted, tokens: x.prompt(), estimated: "client_gone"}
	}
	if stopped(cause) {
		return &failure{err: stopFault(cause), outcome: usage.Aborted, tokens: x.prompt(), estimated: fault.Of(stopFault(cause)).Code}
	}
	x.failed(0, nil, nil)
	var late *timeoutError
	if errors.As(cause, &late) {
		err = outbound.Fault(context.DeadlineExceeded)
	}
	return &failure{err: err, outcome: usage.ProviderError, next: otherProvider}
}

// prompt is what a call takes that its provider has and whose answer nobody waits
// for.
func (x *exchange) prompt() limits.Tokens {
	return x.call.tokens(limits.Tokens{Input: x.estimate.Tokens.Input})
}

// stopped tells whether a cause is that this server stops, or the tenant has to.
func stopped(cause error) bool {
	return errors.Is(cause, errHalted) || errors.Is(cause, errSuspended)
}

func stopFault(cause error) error {
	if errors.Is(cause, errSuspended) {
		return fault.New(fault.Unauthenticated, "tenant_suspended", "This account is suspended.")
	}
	return halted()
}

func halted() error {
	return fault.New(fault.Unavailable, "server_stopping", "This server is being replaced and could not wait for the provider any longer. Send the call again.").After(time.Second)
}

// rejected is an answer with an error status. The status alone classifies it;
// words of the body only reach the client where they are about its own request,
// free of secrets.
func (x *exchange) rejected(resp *http.Response) *failure {
	body, _ := io.ReadAll(io.LimitReader(x.try.watch.reader(resp.Body, errorLimit), errorLimit)) // what came is enough
	return x.refusedBy(resp.StatusCode, resp.Header, body)
}

// refusedBy is an error of a provider, by its status.
func (x *exchange) refusedBy(status int, header http.Header, body []byte) *failure {
	f := &failure{status: status, outcome: usage.ProviderError, next: otherKey}
	e := readError(body)
	switch {
	case status == http.StatusForbidden && e.flagged():
		return x.wrong(f, body)
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		x.failed(status, header, body)
		f.err = fault.New(fault.Upstream, "upstream_auth_failed", fmt.Sprintf("The provider refused the credential that it was called with (status %d). Whoever runs this service has to look at it.", status))
	case status == http.StatusTooManyRequests && e.hopeless():
		x.learns(status, header, body)
		f.outcome, f.err = usage.ProviderLimited, errTooLargeThere
	case status == http.StatusTooManyRequests:
		x.failed(status, header, body)
		f.outcome, f.err = usage.ProviderLimited, x.s.capacity(x.all, x.call.model)
	case status == http.StatusNotFound:
		f.outcome, f.err = usage.ClientError, unknownModel(x.call.model)
	case status == http.StatusRequestTimeout:
		x.failed(http.StatusGatewayTimeout, header, body)
		f.next, f.err = otherProvider, outbound.Fault(context.DeadlineExceeded)
	case status == statusNoCapacity:
		return x.broken(f, http.StatusServiceUnavailable, header, body)
	case status >= 400 && status < 500:
		x.wrong(f, body)
		if x.outOfCredit(header, body) {
			f.next = otherKey
		}
	default:
		return x.broken(f, status, header, body)
	}
	return f
}

// statusNoCapacity is Groq's own.
const statusNoCapacity = 498

// errTooLargeThere is what a client is told where its call alone is more than a
// provider key may take.
var errTooLargeThere = fault.New(fault.TooLarge, "request_too_large", "This call asks for more tokens than any provider key of this service may take in a minute. Ask for less: a shorter prompt, a lower ceiling of the output.")

// wrong is a call that the provider refuses for what it says: its words go on.
func (x *exchange) wrong(f *failure, body []byte) *failure {
	secret := x.at.Endpoint.Secret
	f.outcome, f.next, f.err = usage.ClientError, never, &relayed{f.status, relayedBody(body, messageOf(body, secret), secret)}
	return f
}

// broken is a failure of the provider's.
func (x *exchange) broken(f *failure, status int, header http.Header, body []byte) *failure {
	x.failed(status, header, body)
	f.next, f.err = otherProvider, fault.New(fault.Upstream, "upstream_error", fmt.Sprintf("The provider failed (status %d).", f.status))
	return f
}

// inside is an error in a 200: by the status that it stands for, else a failure
// of the provider.
func (x *exchange) inside(header http.Header, body []byte) *failure {
	if n := readError(body).meant(); n != 0 {
		return x.refusedBy(n, header, body)
	}
	x.failed(http.StatusOK, header, body)
	return &failure{
		err:     fault.New(fault.Upstream, "upstream_error", "The provider answered with an error: "+messageOf(body, x.at.Endpoint.Secret)),
		outcome: usage.ProviderError, next: otherProvider,
	}
}

// invalid is an answer that cannot be read.
func (x *exchange) invalid(cause error) *failure {
	x.failed(0, nil, nil)
	return &failure{
		err:     fault.New(fault.Upstream, "upstream_invalid_response", "The provider's answer is not valid JSON, or is too large.").Because(cause),
		outcome: usage.ProviderError, next: otherProvider,
	}
}
