package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

// checkpointEvery is how often a running stream writes down what it has used.
const checkpointEvery = 2 * time.Second

// chunk is what matters of one event of OpenAI's stream.
type chunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   string         `json:"content"`
			Refusal   string         `json:"refusal"`
			Reasoning string         `json:"reasoning_content"`
			ToolCalls jsontext.Value `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
	Error jsontext.Value `json:"error"`
}

// flow is a stream on its way through.
type flow struct {
	x          *exchange
	w          *echo.Response
	control    *http.ResponseController
	gone       bool         // the client takes nothing more
	choices    map[int]bool // by index: whether it said why it ended
	done       bool         // [DONE] came
	failed     string
	failure    []byte // the event that said so
	header     http.Header
	usage      jsontext.Value
	chunks     int64 // with text
	textBytes  int64
	checkpoint time.Time
}

// stream copies a stream event by event. The headers tell the limits with the
// estimate held; the last event, [DONE], goes out after the call is settled and
// written down.
func (x *exchange) stream(ctx context.Context, resp *http.Response) error {
	if media, _, err := mime.ParseMediaType(resp.Header.Get(echo.HeaderContentType)); err != nil || media != "text/event-stream" {
		var body []byte
		if media == echo.MIMEApplicationJSON {
			body, _ = io.ReadAll(io.LimitReader(x.watch.reader(resp.Body), errorLimit)) // what came is enough
		}
		x.settle(usage.Result{Outcome: usage.ProviderError})
		x.failed(resp.StatusCode, resp.Header, body)
		return fault.New(fault.Upstream, "upstream_invalid_response", "The provider did not answer with a stream.")
	}
	w := x.k.echo.Response()
	f := &flow{x: x, w: w, header: resp.Header, choices: map[int]bool{}, control: http.NewResponseController(w), checkpoint: x.s.Now()}
	verdict.Headers(w.Header(), x.k.states)
	w.Header().Set(echo.HeaderContentType, "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	f.flush()
	err := f.copy(newSSEReader(x.watch.reader(resp.Body)))
	return f.end(ctx, err)
}

// copy passes events on until the stream is over. nil means that it ended as
// streams do.
func (f *flow) copy(r *sseReader) error {
	for {
		e, err := r.next()
		if err != nil {
			return err
		}
		if f.pass(e) {
			f.write(f.x.route.Endpoint.Secret.ScrubBytes(e.text))
		}
		if f.done || f.failed != "" {
			return nil
		}
		f.note()
	}
}

// pass looks at an event and tells whether the client gets it as it is.
func (f *flow) pass(e event) bool {
	if !e.hasData {
		return true
	}
	if bytes.Equal(bytes.TrimSpace(e.data), []byte("[DONE]")) {
		f.done = true
		return false
	}
	var c chunk
	if err := jsonx.Unmarshal(e.data, &c, lenient); err != nil {
		return true
	}
	if present(c.Error) {
		f.failed, f.failure = messageOf(e.data, f.x.route.Endpoint.Secret), bytes.Clone(e.data)
		return false
	}
	for _, choice := range c.Choices {
		text := len(choice.Delta.Content) + len(choice.Delta.Refusal) + len(choice.Delta.Reasoning)
		if present(choice.Delta.ToolCalls) {
			text += len(choice.Delta.ToolCalls)
		}
		if text > 0 {
			f.chunks++
			f.textBytes += int64(text)
		}
		if len(f.choices) < maxChoices {
			f.choices[choice.Index] = f.choices[choice.Index] || choice.Finish != ""
		}
	}
	if present(c.Usage) {
		f.usage = c.Usage.Clone()
		return len(c.Choices) > 0 || f.x.call.wantUsage
	}
	return true
}

// finished tells whether every choice that was asked for said why it ended:
// then a provider that leaves out [DONE] is done all the same.
func (f *flow) finished() bool {
	for _, ended := range f.choices {
		if !ended {
			return false
		}
	}
	return int64(len(f.choices)) >= f.x.call.choices
}

// streamed estimates the output so far: a piece is at least a token, and four
// bytes are about one.
func (f *flow) streamed() limits.Tokens {
	return limits.Tokens{Input: f.x.estimate.Tokens.Input, Output: max(f.chunks, (f.textBytes+3)/4)}
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

// write sends to the client, unless it left; a client that does not take it in
// time counts as gone.
func (f *flow) write(b []byte) {
	if f.gone {
		return
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(f.x.s.Timeouts.Write)) // where the writer has none, writes do not hang
	if _, err := f.w.Write(b); err != nil {
		f.leave()
		return
	}
	f.flush()
}

func (f *flow) flush() {
	if err := f.control.Flush(); err != nil {
		f.leave()
	}
}

func (f *flow) leave() {
	f.gone = true
	f.x.watch.clientLeft()
}

// end settles the stream and says its last word.
func (f *flow) end(ctx context.Context, err error) error {
	gone := f.gone || f.x.k.ctx.Err() != nil
	tokens, why := readUsage(f.usage)
	complete := err == nil && f.done || f.finished() && f.failed == ""
	switch {
	case why == "":
	case f.failed != "" && f.chunks == 0:
		why = "" // an error instead of an answer used nothing, as in an answer that is no stream
	case gone:
		tokens, why = f.streamed(), "client_gone"
	case !complete:
		tokens, why = f.streamed(), "stream_cut"
	default:
		tokens = f.streamed()
	}
	r := usage.Result{Outcome: usage.OK, Tokens: tokens, Estimated: why}
	switch {
	case gone, errors.Is(context.Cause(ctx), errHalted):
		r.Outcome = usage.Aborted
	case !complete:
		r.Outcome = usage.ProviderError
	}
	f.x.settle(r)
	switch r.Outcome {
	case usage.OK:
		f.x.served(f.header)
	case usage.ProviderError:
		f.x.failed(http.StatusOK, f.header, f.failure)
	}
	if complete {
		f.write([]byte("data: [DONE]\n\n"))
		return nil
	}
	f.write(f.errorEvent(ctx, err))
	return nil
}

// errorEvent is how an error looks in a stream that has begun. No [DONE]
// follows it.
func (f *flow) errorEvent(ctx context.Context, err error) []byte {
	code, message := "upstream_cut", "The provider's answer ended early."
	var late *timeoutError
	switch {
	case f.failed != "":
		code, message = "upstream_error", "The provider reported an error: "+f.failed
	case errors.Is(context.Cause(ctx), errHalted):
		code, message = "server_stopping", "This server is being replaced and could not wait for the rest."
	case errors.As(context.Cause(ctx), &late):
		code, message = "upstream_timeout", "The provider did not go on in time."
	case errors.Is(err, errLineTooLong):
		code, message = "upstream_invalid_response", "The provider's stream is not valid."
	}
	b, _ := json.Marshal(openAIError{openAIErrorBody{Message: message, Type: "server_error", Code: &code}})
	return append(append([]byte("data: "), b...), '\n', '\n')
}
