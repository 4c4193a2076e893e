package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/jsonbody"
	"weir/internal/tenants"
)

const (
	idempotencyKey     = "Idempotency-Key"
	idempotentReplayed = "Idempotent-Replayed"
	longestKey         = 255
)

// claimed reads the Idempotency-Key of a request that changes something. Its
// claim is bound to the credential, the route and the body.
func (s *Server) claimed(r *request) (*tenants.Claim, error) {
	c := r.echo.Request()
	if c.Method != http.MethodPost || !strings.HasPrefix(c.URL.Path, "/api/v1/") {
		return nil, nil //nolint:nilnil // it claims nothing
	}
	key, err := requestKey(c)
	if key == "" || err != nil {
		return nil, err
	}
	body, err := jsonbody.Read(c.Body, bodyLimit)
	if err != nil {
		return nil, err
	}
	c.Body = io.NopCloser(bytes.NewReader(body))
	return &tenants.Claim{
		Credential: r.caller.Key.Counter, Key: sha256.Sum256([]byte(key)),
		Request: sha256.Sum256(fmt.Appendf(nil, "%s\n%s", c.URL.RequestURI(), body)), RequestID: requestUUID(r.echo), At: s.now(),
	}, nil
}

// requestKey is the Idempotency-Key of a request; "" for none.
func requestKey(c *http.Request) (string, error) {
	key := c.Header.Get(idempotencyKey)
	if len(key) > longestKey || len(tenants.CheckText("", key)) > 0 || len(c.Header.Values(idempotencyKey)) > 1 {
		return "", fault.New(fault.Invalid, "bad_idempotency_key", "An Idempotency-Key is one header of at most 255 printable characters, such as a UUID.")
	}
	return key, nil
}

// once answers a request as it was answered before, or carries it out.
func (s *Server) once(r *request, do func() (status int, answer any, err error)) error {
	claim, err := s.claimed(r)
	if err != nil {
		return err
	}
	if claim != nil {
		replay, found, err := s.tenants.Recall(r.ctx, r.tenant(), *claim)
		if err != nil {
			return err
		}
		if found {
			return answerAgain(r.echo, replay)
		}
		r.ctx = tenants.WithClaim(r.ctx, *claim)
	}
	status, answer, err := do()
	if err != nil && claim != nil {
		return s.refused(r, *claim, err)
	}
	if err != nil {
		return err
	}
	if claim != nil {
		s.remember(r, *claim, status, answer)
	}
	if status == http.StatusNoContent {
		return r.echo.NoContent(status)
	}
	return r.echo.JSON(status, answer)
}

// refused answers a request that was refused: by what its own twin made meanwhile,
// where it has one, and then the twin's answer is its answer.
func (s *Server) refused(r *request, claim tenants.Claim, why error) error {
	if fault.Is(why, fault.Unavailable) || fault.Of(why).Code == "idempotency_in_flight" {
		return why
	}
	replay, found, err := s.tenants.RecallTwin(r.ctx, r.tenant(), claim)
	switch {
	case !found:
		return why
	case err != nil:
		return err
	}
	return answerAgain(r.echo, replay)
}

func answerAgain(c echo.Context, r tenants.Replay) error {
	c.Response().Header().Set(idempotentReplayed, "true")
	if r.Status == http.StatusNoContent {
		return c.NoContent(r.Status)
	}
	return c.JSONBlob(r.Status, r.Answer)
}

// remember keeps an answer without its secret. What cannot be kept is let go:
// the change was made, and will not be made again.
func (s *Server) remember(r *request, claim tenants.Claim, status int, answer any) {
	kept, err := withoutSecret(answer)
	if err == nil {
		err = s.tenants.Remember(r.ctx, r.tenant(), claim, tenants.Replay{Status: status, Answer: kept})
	}
	if err != nil {
		s.log.WarnContext(r.ctx, "answer for an idempotency key not kept", slog.String("error", err.Error()))
	}
}

func withoutSecret(answer any) ([]byte, error) {
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	before := len(members)
	for _, secret := range []string{"secret", "sign_in_url", "public_url"} {
		delete(members, secret)
	}
	if len(members) == before {
		return raw, nil
	}
	return json.Marshal(members)
}
