package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

// checkpointEvery is how often a running stream writes down what it has used.
const checkpointEvery = 2 * time.Second

// silentFor is how long what comes before the first word is held back.
const silentFor = 5 * time.Second

// outlet is an answer that goes out in pieces.
type outlet struct {
	x       *exchange
	w       *echo.Response
	control *http.ResponseController
	gone    bool // the client takes nothing more
}

// open begins the answer. The headers tell the limits with the estimate held.
func (x *exchange) open(contentType string) *outlet {
	w := x.k.echo.Response()
	h := w.Header()
	verdict.Headers(h, x.k.states)
	x.k.anthropicHeaders(x.s.Now())
	h.Set(echo.HeaderContentType, contentType)
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &outlet{x: x, w: w, control: http.NewResponseController(w)}
}

// write sends to the client, unless it left; a client that does not take it in
// time counts as gone.
func (o *outlet) write(b []byte) {
	if o.gone || len(b) == 0 {
		return
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(o.x.s.Timeouts.Write)) // where the writer has none, writes do not hang
	_, err := o.w.Write(b)
	if err == nil {
		err = o.control.Flush()
	}
	if err != nil {
		o.gone = true
		o.x.try.watch.clientLeft()
	}
}

// flow is a stream on its way through.
type flow struct {
	x          *exchange
	out        *outlet // nil: nothing has reached the client
	stream     *wire.Stream
	header     http.Header
	since      time.Time
	checkpoint time.Time
	buffer     []byte
	events     int64
}

// stream copies a stream event by event, in the client's form. The last words go
// out after the call is settled and written down.
func (x *exchange) stream(resp *http.Response) *failure {
	now := x.s.Now()
	f := &flow{x: x, header: resp.Header, stream: wire.NewStream(x.at.in, x.call.form.wire, x.call.streamOptions(x.k, now)), since: now, checkpoint: now}
	x.took = func() usage.Result { return f.took(false) }
	err := f.copy(wire.NewReader(x.at.in, x.try.watch.reader(resp.Body, piecesLimit)))
	body, failed := f.stream.Failed()
	switch {
	case f.out != nil:
		f.buffer = f.buffer[:0]
		f.end(err)
		x.rest(resp.Body)
		return nil
	case failed:
		return x.inside(resp.Header, body)
	case f.complete(err):
		f.begin()
		f.out.write(f.x.at.Endpoint.Secret.ScrubBytes(f.buffer))
		f.end(err)
		x.rest(resp.Body)
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, wire.ErrLineTooLong), errors.Is(err, errTooMuch):
		return x.invalid(err)
	}
	return x.lost(fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.").Because(err))
}

// What comes after the last word of a stream is its end, and the connection is
// the next call's when that was read.
const (
	restFor   = 250 * time.Millisecond
	restBytes = 4 << 10
)

// rest waits for it, for a moment: the client has its answer.
func (x *exchange) rest(body io.Reader) {
	enough := time.AfterFunc(restFor, func() { x.try.watch.cancel(nil) })
	defer enough.Stop()
	_, _ = io.CopyN(io.Discard, body, restBytes)
}

// noStream is an answer in one piece where a stream was asked for: it is bought,
// and becomes one.
func (x *exchange) noStream(resp *http.Response) *failure {
	if !isJSON(resp) {
		return x.invalid(nil)
	}
	got, body, f := x.read(resp)
	if f != nil {
		return f
	}
	r := x.result(got)
	x.took = func() usage.Result { return r }
	now := x.s.Now()
	out, err := x.call.answer(x.at.in, body, x.k, r.Tokens, now)
	if err == nil {
		out, err = wire.Streamed(x.call.form.wire, out, x.call.streamOptions(x.k, now), r.Tokens)
	}
	if err != nil {
		return &failure{err: err, outcome: usage.ProviderError, tokens: r.Tokens, estimated: r.Estimated}
	}
	x.try.model = got.Model
	x.settle(r)
	x.served(resp.Header)
	x.open("text/event-stream").write(x.at.Endpoint.Secret.ScrubBytes(out))
	return nil
}

func (f *flow) begin() { f.out = f.x.open("text/event-stream") }

// copy passes events on until the stream is over. nil means that it ended as
// streams do, or said that it failed.
func (f *flow) copy(r *wire.Reader) error {
	for {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e.HasData {
			if f.events++; f.x.try.model == "" && f.events < 4 {
				f.x.try.model = reportedIn(e.Data)
			}
		}
		f.buffer = f.stream.Next(f.buffer, e)
		if _, failed := f.stream.Failed(); failed || f.stream.Done() {
			f.pass()
			return nil
		}
		f.pass()
		f.note()
	}
}

// pass sends what events became, once there is something of the answer: until
// then another provider may still serve the call. A failure keeps back what came
// before it, unless the answer has begun.
func (f *flow) pass() {
	_, failed := f.stream.Failed()
	if f.out == nil && (failed || !f.worth()) || len(f.buffer) == 0 {
		return
	}
	if f.out == nil {
		f.begin()
	}
	f.out.write(f.x.at.Endpoint.Secret.ScrubBytes(f.buffer))
	f.buffer = f.buffer[:0]
}

// worth tells whether what has come is worth an answer: a word of it, its end,
// or more silence than a client should sit through.
func (f *flow) worth() bool {
	pieces, _ := f.stream.Streamed()
	return pieces > 0 || f.stream.Begun() && f.stream.Done() || f.stream.Finished() || len(f.buffer) > heldBack ||
		f.x.call.form.media && f.events > 0 || f.x.s.Now().Sub(f.since) > silentFor
}

// heldBack is the most that is kept back before an answer begins.
const heldBack = 64 << 10

// streamed estimates the output so far: a piece is at least a token, and four
// bytes are about one.
func (f *flow) streamed() limits.Tokens {
	pieces, bytes := f.stream.Streamed()
	return f.x.call.tokens(limits.Tokens{Input: f.x.estimate.Tokens.Input, Output: max(pieces, (bytes+3)/4)})
}

// reason is why the figures of a stream are estimated.
func (f *flow) reason(gone, complete bool) string {
	switch {
	case gone:
		return "client_gone"
	case stopped(context.Cause(f.x.try.ctx)):
		return fault.Of(stopFault(context.Cause(f.x.try.ctx))).Code
	case !complete:
		return "stream_cut"
	}
	return "usage_absent"
}

// sofar is what a stream stated before its end, with the output as far as it
// came: what is stated early is none of it, or a part.
func (f *flow) sofar(t limits.Tokens) limits.Tokens {
	if out := f.streamed().Output; out > t.Output+t.Reasoning {
		t.Output = out - t.Reasoning
	}
	return t
}

func (f *flow) note() {
	now := f.x.s.Now()
	if now.Sub(f.checkpoint) < checkpointEvery {
		return
	}
	f.checkpoint = now
	if err := f.x.s.Spool.Checkpoint(f.x.k.who.Tenant.ID, f.x.reservation, f.streamed()); err != nil {
		f.x.s.Log.WarnContext(f.x.k.ctx, "stream not checkpointed", "request_id", f.x.k.requestID(), "error", err)
	}
}

// complete tells whether the stream said all that it had to.
func (f *flow) complete(err error) bool {
	_, failed := f.stream.Failed()
	return !failed && f.stream.Begun() && (err == nil && f.stream.Done() || f.stream.Finished())
}

// took is what the stream took so far, complete or not.
func (f *flow) took(complete bool) usage.Result {
	_, failed := f.stream.Failed()
	pieces, _ := f.stream.Streamed()
	gone := f.gone()
	r := usage.Result{Outcome: usage.OK}
	r.Tokens, r.Estimated = f.stream.Usage()
	early := r.Estimated == "" && (!complete || !f.stream.OutputStated())
	switch {
	case early && !f.x.call.form.media:
		r.Tokens, r.Estimated = f.sofar(r.Tokens), f.reason(gone, complete)
	case r.Estimated == "":
	case f.x.call.form.media:
		r.Estimated = "" // it states none: a request is all there is
	case failed && pieces == 0:
		r.Estimated = "" // an error instead of an answer used nothing, as in an answer that is no stream
	case gone || !complete:
		r.Tokens, r.Estimated = f.streamed(), f.reason(gone, complete)
	default:
		r.Tokens = f.streamed()
	}
	switch {
	case gone, stopped(context.Cause(f.x.try.ctx)):
		r.Outcome = usage.Aborted
	case !complete:
		r.Outcome = usage.ProviderError
	}
	return r
}

func (f *flow) gone() bool { return f.out != nil && f.out.gone || f.x.k.ctx.Err() != nil }

// end settles the stream and says its last word.
func (f *flow) end(err error) {
	body, _ := f.stream.Failed()
	complete := f.complete(err)
	r := f.took(complete)
	f.x.try.costs(f.stream.Apart())
	f.x.settle(r)
	switch r.Outcome {
	case usage.OK:
		f.x.served(f.header)
	case usage.ProviderError:
		f.x.failed(http.StatusOK, f.header, body)
	}
	if complete {
		f.out.write(f.stream.End(f.buffer[:0], r.Tokens))
		return
	}
	f.out.write(f.x.errorEvent(f.why(err, body), f.events))
}

// amid tells an error that came in the middle of an answer. What is the key's
// own business is not told.
func (x *exchange) amid(body []byte) string {
	switch readError(body).meant() {
	case http.StatusTooManyRequests:
		return "The provider reached a limit of its own in the middle of the answer."
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return "The provider refused its credential in the middle of the answer."
	}
	return "The provider reported an error: " + messageOf(body, x.at.Endpoint.Secret)
}

// why is what a stream that has begun says of its early end.
func (f *flow) why(err error, body []byte) error {
	var late *timeoutError
	cause := context.Cause(f.x.try.ctx)
	switch {
	case body != nil:
		return fault.New(fault.Upstream, "upstream_error", f.x.amid(body))
	case errors.Is(cause, errHalted):
		return fault.New(fault.Upstream, "server_stopping", "This server is being replaced and could not wait for the rest.")
	case errors.Is(cause, errSuspended):
		return stopFault(cause)
	case errors.As(cause, &late):
		return fault.New(fault.Upstream, "upstream_timeout", "The provider did not go on in time.")
	case errors.Is(err, wire.ErrLineTooLong), errors.Is(err, errTooMuch):
		return fault.New(fault.Upstream, "upstream_invalid_response", "The provider's stream is not valid.")
	}
	return fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.")
}
