package catalogue

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"weir/internal/fault"
)

// tryLimit bounds the answer that a trial reads.
const tryLimit = 256 << 10

type tryBody struct {
	Model     string       `json:"model"`
	MaxTokens int          `json:"max_tokens,omitempty"`
	Messages  []tryMessage `json:"messages"`
}

type tryMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Try makes the smallest call of a model that there is, for it alone shows
// whether credit and account allow one: one word, one token of answer, without
// the ceiling where a model takes none. nil: it was served. A refusal of the
// credential, the balance, the account or a limit is Unauthenticated
// provider_key_refused; every other failure is Upstream, and proves nothing.
func (c *Client) Try(ctx context.Context, e Endpoint, model string) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	status, err := c.try(ctx, e, tryBody{Model: model, MaxTokens: 1, Messages: []tryMessage{{"user", "ok"}}})
	if err == nil && status == http.StatusBadRequest && e.Provider.Form != Anthropic { // which demands one
		status, err = c.try(ctx, e, tryBody{Model: model, Messages: []tryMessage{{"user", "ok"}}})
	}
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden, status == http.StatusTooManyRequests:
		return fault.Newf(fault.Unauthenticated, "provider_key_refused", "The provider refused the check (status %d).", status)
	}
	return fault.Newf(fault.Upstream, "provider_check_failed", "The provider answered the check with status %d.", status)
}

func (c *Client) try(ctx context.Context, e Endpoint, b tryBody) (status int, err error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return 0, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"weir"}}
	route := RouteChat
	if e.Provider.Form == Anthropic {
		route = RouteMessages
	}
	resp, err := c.Do(ctx, e, http.MethodPost, route, header, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error *struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, tryLimit)) // what came is enough
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Error == nil {
		return resp.StatusCode, nil
	}
	if code, err := strconv.Atoi(string(answer.Error.Code)); err == nil && code >= 400 && code <= 599 {
		return code, nil // some send their errors inside a 200
	}
	return http.StatusBadGateway, nil
}
