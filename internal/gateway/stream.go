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

// silentFor is how long comments that come before the first event are held
// back: as long as nothing reached the client, another provider may serve it.
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
	err := f.copy(wire.NewReader(x.at.in, x.try.watch.reader(resp.Body)))
	body, failed := f.stream.Failed()
	switch {
	case f.out != nil:
		f.end(err)
		return nil
	case failed:
		return x.inside(resp.Header, body)
	case err == nil || f.complete(err):
		f.begin()
		f.end(err)
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, wire.ErrLineTooLong):
		return x.invalid(err)
	}
	return x.lost(fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.").Because(err))
}

// noStream is an answer in one piece where a stream was asked for.
func (x *exchange) noStream(resp *http.Response) *failure {
	var body []byte
	if isJSON(resp) {
		body, _ = io.ReadAll(io.LimitReader(x.try.watch.reader(resp.Body), errorLimit)) // what came is enough
	}
	if body != nil && present(wire.ReadAnswer(x.at.in, body).Error) {
		return x.inside(resp.Header, body)
	}
	x.failed(resp.StatusCode, resp.Header, body)
	return &failure{
		err:     fault.New(fault.Upstream, "upstream_invalid_response", "The provider did not answer with a stream."),
		outcome: usage.ProviderError, next: otherProvider,
	}
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
		f.buffer = f.stream.Next(f.buffer[:0], e)
		if _, failed := f.stream.Failed(); failed || f.stream.Done() {
			f.pass()
			return nil
		}
		if f.out != nil || e.HasData || f.x.s.Now().Sub(f.since) > silentFor {
			f.pass()
		}
		f.note()
	}
}

// pass sends what an event became.
func (f *flow) pass() {
	if len(f.buffer) == 0 {
		return
	}
	if f.out == nil {
		f.begin()
	}
	f.out.write(f.x.at.Endpoint.Secret.ScrubBytes(f.buffer))
}

// streamed estimates the output so far: a piece is at least a token, and four
// bytes are about one.
func (f *flow) streamed() limits.Tokens {
	pieces, bytes := f.stream.Streamed()
	return f.x.call.tokens(limits.Tokens{Input: f.x.estimate.Tokens.Input, Output: max(pieces, (bytes+3)/4)})
}

// sofar is what a stream of Anthropic's form stated at its beginning, with the
// output as far as it came: that is stated at the end only.
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
	return !failed && (err == nil && f.stream.Done() || f.stream.Finished())
}

// end settles the stream and says its last word.
func (f *flow) end(err error) {
	body, failed := f.stream.Failed()
	gone := f.out.gone || f.x.k.ctx.Err() != nil
	complete := f.complete(err)
	pieces, _ := f.stream.Streamed()
	r := usage.Result{Outcome: usage.OK}
	r.Tokens, r.Estimated = f.stream.Usage()
	if r.Estimated == "" && !complete && f.x.at.in == wire.Messages {
		r.Tokens, r.Estimated = f.sofar(r.Tokens), "stream_cut"
		if gone {
			r.Estimated = "client_gone"
		}
	}
	switch {
	case r.Estimated == "" || r.Tokens != (limits.Tokens{}):
	case f.x.call.form.media:
		r.Estimated = "" // it states none: a request is all there is
	case failed && pieces == 0:
		r.Estimated = "" // an error instead of an answer used nothing, as in an answer that is no stream
	case gone:
		r.Tokens, r.Estimated = f.streamed(), "client_gone"
	case !complete:
		r.Tokens, r.Estimated = f.streamed(), "stream_cut"
	default:
		r.Tokens = f.streamed()
	}
	switch {
	case gone, errors.Is(context.Cause(f.x.try.ctx), errHalted):
		r.Outcome = usage.Aborted
	case !complete:
		r.Outcome = usage.ProviderError
	}
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

// why is what a stream that has begun says of its early end.
func (f *flow) why(err error, body []byte) error {
	var late *timeoutError
	cause := context.Cause(f.x.try.ctx)
	switch {
	case body != nil:
		return fault.New(fault.Upstream, "upstream_error", "The provider reported an error: "+messageOf(body, f.x.at.Endpoint.Secret))
	case errors.Is(cause, errHalted):
		return fault.New(fault.Upstream, "server_stopping", "This server is being replaced and could not wait for the rest.")
	case errors.As(cause, &late):
		return fault.New(fault.Upstream, "upstream_timeout", "The provider did not go on in time.")
	case errors.Is(err, wire.ErrLineTooLong):
		return fault.New(fault.Upstream, "upstream_invalid_response", "The provider's stream is not valid.")
	}
	return fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.")
}
