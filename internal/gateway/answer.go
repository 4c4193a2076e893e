package gateway

import (
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

const (
	answerLimit = 64 << 20  // of a whole answer
	vectorLimit = 256 << 20 // of one of vectors, which some write a line each
	piecesLimit = 256 << 20 // of an answer that goes on in pieces as it comes
	errorLimit  = 64 << 10  // of an error's body
)

// lenient reads what every SDK reads too: a text that ends in half of a
// surrogate pair is no reason to lose an answer.
var lenient = jsontext.AllowInvalidUTF8(true)

func isStream(resp *http.Response) bool { return mediaOf(resp) == "text/event-stream" }

// isJSON tells whether an answer is read as JSON: one without a type is.
func isJSON(resp *http.Response) bool {
	m := mediaOf(resp)
	return m == echo.MIMEApplicationJSON || m == "" || strings.HasSuffix(m, "+json")
}

func mediaOf(resp *http.Response) string {
	said := resp.Header.Get(echo.HeaderContentType)
	if said == echo.MIMEApplicationJSON || said == "text/event-stream" {
		return said // as nearly all of them write it
	}
	media, _, _ := mime.ParseMediaType(said)
	return media
}

// read takes an answer of one JSON value.
func (x *exchange) read(resp *http.Response) (got wire.Answer, body []byte, f *failure) {
	most := int64(answerLimit)
	if x.call.form.wire == wire.Embeddings {
		most = vectorLimit
	}
	body, err := io.ReadAll(io.LimitReader(x.try.watch.reader(resp.Body, most+1), most+1))
	if err != nil {
		return got, nil, x.lost(fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.").Because(err))
	}
	if int64(len(body)) > most { // it is bought, and not bought again
		return got, nil, &failure{
			err:     fault.New(fault.Upstream, "upstream_invalid_response", "The provider's answer is too large."),
			outcome: usage.ProviderError, tokens: x.call.tokens(x.estimate.Tokens), estimated: "answer_too_large",
		}
	}
	got = wire.ReadAnswer(x.at.in, body)
	switch {
	case !got.Valid || got.Empty:
		return got, nil, x.invalid(nil)
	case present(got.Error):
		return got, nil, x.inside(resp.Header, body)
	}
	return got, body, nil
}

// whole passes on an answer of one JSON value.
func (x *exchange) whole(resp *http.Response) *failure {
	got, body, f := x.read(resp)
	if f != nil {
		return f
	}
	r := x.result(got)
	x.took = func() usage.Result { return r }
	out, err := x.call.answer(x.at.in, body, x.k, r.Tokens, x.s.Now())
	if err != nil {
		return x.invalid(err)
	}
	x.try.model = got.Model
	x.settle(r)
	x.served(resp.Header)
	verdict.Headers(x.k.echo.Response().Header(), x.k.states)
	x.k.anthropicHeaders(x.s.Now())
	_ = x.k.echo.Blob(http.StatusOK, echo.MIMEApplicationJSON, x.at.Endpoint.Secret.ScrubBytes(out)) // a client that left reads nothing
	return nil
}

// result is what a whole answer took.
func (x *exchange) result(got wire.Answer) usage.Result {
	x.try.costs(got.Apart, got.Tier)
	r := usage.Result{Outcome: x.outcome()}
	if r.Tokens, r.Estimated = wire.Usage(x.at.in, got.Usage); r.Estimated == "" {
		return r
	}
	if x.call.form.media {
		return usage.Result{Outcome: r.Outcome} // it states none: a request is all there is
	}
	r.Tokens = limits.Tokens{Input: x.estimate.Tokens.Input, Output: exactJSON(got.Output, x.at.model)}
	return r
}

// outcome of a call that the provider served to the end.
func (x *exchange) outcome() usage.Outcome {
	if x.k.ctx.Err() != nil {
		return usage.Aborted
	}
	return usage.OK
}

// tokens are what a call took by an estimate: nothing of a form that is metered
// by request.
func (call *call) tokens(t limits.Tokens) limits.Tokens {
	if call.form.media {
		return limits.Tokens{}
	}
	return t
}

// passable are the kinds of content that media routes answer with.
func passable(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	return kind == "audio" || kind == "image" || media == "text/plain" || media == "text/vtt" || media == "application/x-subrip" || media == echo.MIMEOctetStream
}

// raw passes on an answer that is no JSON as it comes: audio, subtitles. The
// call is settled before the last piece goes out.
func (x *exchange) raw(resp *http.Response) *failure {
	media := mediaOf(resp)
	if !passable(media) {
		return x.invalid(nil)
	}
	from := x.try.watch.reader(resp.Body, piecesLimit)
	held, spare := make([]byte, 32<<10), make([]byte, 32<<10)
	n, err := io.ReadAtLeast(from, held, 1)
	if err != nil && err != io.EOF { //nolint:errorlint // ReadAtLeast's own
		return x.lost(fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.").Because(err))
	}
	out := x.open(resp.Header.Get(echo.HeaderContentType))
	held = held[:n]
	for err == nil {
		var n int
		spare = spare[:cap(spare)]
		if n, err = from.Read(spare); n > 0 {
			out.write(held)
			held, spare = spare[:n], held
		}
	}
	if err != io.EOF { //nolint:errorlint // readers return it as it is
		f := x.lost(err)
		x.settle(usage.Result{Outcome: f.outcome})
		panic(http.ErrAbortHandler) // there is no other way to say that it is not all
	}
	x.settle(usage.Result{Outcome: x.outcome()})
	x.served(resp.Header)
	out.write(held)
	return nil
}
