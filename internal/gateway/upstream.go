package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

const (
	answerLimit = 64 << 20 // of a whole answer
	errorLimit  = 64 << 10 // of an error's body
)

// lenient reads what every SDK reads too: a text that ends in half of a
// surrogate pair is no reason to lose an answer.
var lenient = jsontext.AllowInvalidUTF8(true)

// whole passes on an answer that is not a stream.
func (x *exchange) whole(ctx context.Context, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(x.watch.reader(resp.Body), answerLimit+1))
	if err != nil {
		return x.lost(ctx, fault.New(fault.Upstream, "upstream_cut", "The provider's answer ended early.").Because(err))
	}
	var got struct {
		Usage   jsontext.Value `json:"usage"`
		Error   jsontext.Value `json:"error"`
		Choices jsontext.Value `json:"choices"`
	}
	if err := json.Unmarshal(body, &got, lenient); err != nil || jsontext.Value(body).Kind() != '{' || len(body) > answerLimit {
		x.settle(usage.Result{Outcome: usage.ProviderError})
		x.failed(0, nil, nil)
		return fault.New(fault.Upstream, "upstream_invalid_response", "The provider's answer is not valid JSON, or is too large.").Because(err)
	}
	if present(got.Error) {
		x.settle(usage.Result{Outcome: usage.ProviderError})
		x.failed(resp.StatusCode, resp.Header, body)
		return fault.New(fault.Upstream, "upstream_error", "The provider answered with an error: "+messageOf(body, x.route.Endpoint.Secret))
	}
	tokens, why := readUsage(got.Usage)
	if why != "" {
		tokens = limits.Tokens{Input: x.estimate.Tokens.Input, Output: guessJSON(got.Choices)}
	}
	x.settle(usage.Result{Outcome: x.outcome(), Tokens: tokens, Estimated: why})
	x.served(resp.Header)
	h := x.k.echo.Response().Header()
	verdict.Headers(h, x.k.states)
	return x.k.echo.Blob(http.StatusOK, echo.MIMEApplicationJSON, x.route.Endpoint.Secret.ScrubBytes(body))
}

// outcome of a call that the provider served to the end.
func (x *exchange) outcome() usage.Outcome {
	if x.k.ctx.Err() != nil {
		return usage.Aborted
	}
	return usage.OK
}

func present(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }

// rejected ends a call that the provider answered with an error status. The
// status alone classifies it; words of the body only reach the client where
// they are about its own request, free of secrets.
func (x *exchange) rejected(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(x.watch.reader(resp.Body), errorLimit)) // what came is enough
	message := messageOf(body, x.route.Endpoint.Secret)
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		x.settle(usage.Result{Outcome: usage.ProviderError})
		x.failed(status, resp.Header, body)
		return fault.New(fault.Upstream, "upstream_auth_failed", fmt.Sprintf("The provider refused the credential that it was called with (status %d). Whoever runs this service has to look at it.", status))
	case status == http.StatusTooManyRequests:
		x.settle(usage.Result{Outcome: usage.ProviderLimited})
		x.failed(status, resp.Header, body)
		return x.s.capacity(x.all, x.call.model)
	case status == http.StatusNotFound:
		x.settle(usage.Result{Outcome: usage.ClientError})
		return unknownModel(x.call.model)
	case status >= 400 && status < 500:
		x.settle(usage.Result{Outcome: usage.ClientError})
		x.outOfCredit(resp.Header, body)
		return &relayed{status, relayedBody(body, message, x.route.Endpoint.Secret)}
	default:
		x.settle(usage.Result{Outcome: usage.ProviderError})
		x.failed(status, resp.Header, body)
		return fault.New(fault.Upstream, "upstream_error", fmt.Sprintf("The provider failed (status %d).", status))
	}
}

// keyLike is what looks like somebody's credential in a provider's words; some
// providers echo a part of it.
var keyLike = regexp.MustCompile(`\b(sk|pk|rk|gsk|xai|csk|key|org|weir|AIza|Bearer)[-_ ]?[A-Za-z0-9_*\-.]{8,}`)

// messageOf is the message in a provider's error body, or a word of our own
// where it has none, with every credential replaced.
func messageOf(body []byte, secret keyring.Secret) string {
	var e struct {
		Error jsontext.Value `json:"error"`
	}
	message := "it gave no reason"
	if json.Unmarshal(body, &e, lenient) == nil && present(e.Error) {
		var object struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &object, lenient) == nil && object.Message != "" {
			message = object.Message
		} else {
			_ = json.Unmarshal(e.Error, &message, lenient) // some send a bare string
		}
	}
	return scrubbed(message, secret)
}

// scrubbed is a provider's text without credentials, and of a bounded length.
func scrubbed(text string, secret keyring.Secret) string {
	text = keyLike.ReplaceAllString(secret.Scrub(text), "[redacted]")
	return text[:min(len(text), 2000)]
}

func relayedBody(body []byte, message string, secret keyring.Secret) openAIErrorBody {
	var e struct {
		Error struct {
			Type  string  `json:"type"`
			Param *string `json:"param"`
			Code  any     `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e, lenient) // what is not there stays empty
	out := openAIErrorBody{Message: message, Type: "invalid_request_error"}
	if e.Error.Type != "" {
		out.Type = scrubbed(e.Error.Type, secret)
	}
	if e.Error.Param != nil {
		param := scrubbed(*e.Error.Param, secret)
		out.Param = &param
	}
	if code, ok := e.Error.Code.(string); ok {
		code = scrubbed(code, secret)
		out.Code = &code
	}
	return out
}
