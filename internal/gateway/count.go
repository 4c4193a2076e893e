package gateway

import (
	"net/http"

	"weir/internal/usage"
	"weir/internal/verdict"
)

// counted is the answer to POST /v1/messages/count_tokens.
type counted struct {
	InputTokens int64 `json:"input_tokens"`
}

// count answers with a count of our own.
func (x *exchange) count(model string) error {
	n := x.call.exact(model)
	x.settle(usage.Result{Outcome: usage.OK})
	verdict.Headers(x.k.echo.Response().Header(), x.k.states)
	x.k.anthropicHeaders(x.s.Now())
	writeJSON(x.k.echo, http.StatusOK, counted{n})
	return nil
}
