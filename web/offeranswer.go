package web

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/jsonbody"
	"weir/internal/quotes"
)

// takenJSON is the answer to a program that accepts.
type takenJSON struct {
	Customer     string     `json:"customer"`
	Subscription string     `json:"subscription"`
	APIKey       *takenKey  `json:"api_key"`
	AcceptedAt   *time.Time `json:"accepted_at"`
}

type takenKey struct {
	ID     string  `json:"id"`
	Secret *string `json:"secret"` // null: it was shown, once
}

type declinedJSON struct {
	Status string `json:"status"`
}

// offerPost is what the forms of an offer send, or a program as JSON.
type offerPost struct {
	Version int    `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	Email   string `json:"email,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func inJSON(c echo.Context) bool {
	t, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	return t == echo.MIMEApplicationJSON
}

// offered reads an answer to an offer, from a form or as JSON.
func offeredAnswer(c echo.Context) (offerPost, form, error) {
	if !inJSON(c) {
		f, err := typed(c)
		version, bad := strconv.Atoi(f.Get("version"))
		if bad != nil {
			version = -1 // of none that was ever sent
		}
		return offerPost{version, f.Get("name"), f.Get("email"), f.Get("reason")}, f, err
	}
	var b offerPost
	body, err := jsonbody.Read(c.Request().Body, maxAnswer)
	if err == nil {
		err = jsonbody.Decode(body, &b)
	}
	return b, form{}, err
}

// maxAnswer is the largest answer of a program.
const maxAnswer = 16 << 10

func (p *Pages) acceptedJSON(c echo.Context, x quotes.Taken, err error) error {
	if err != nil {
		return p.offerProblem(c, err)
	}
	out := takenJSON{Customer: id.Customer.Format(x.Result.Customer), Subscription: id.Subscription.Format(x.Result.Subscription), AcceptedAt: x.DecidedAt}
	if key := id.APIKey.Format(x.Result.APIKey); key != "" {
		out.APIKey = &takenKey{ID: key}
		if x.Secret != "" {
			out.APIKey.Secret = &x.Secret
		}
	}
	return c.JSON(http.StatusOK, out)
}

// problem is an error as programs read it (RFC 9457), in the form of the REST API.
type problem struct {
	Type      string        `json:"type"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Code      string        `json:"code"`
	RequestID string        `json:"request_id"`
	Errors    []fault.Field `json:"errors,omitempty"`
}

// offerProblem answers a program. What is nobody's fault here is left to the
// failure page's handler, which logs it.
func (p *Pages) offerProblem(c echo.Context, err error) error {
	e := fault.Of(err)
	status := statuses[e.Kind]
	if status == 0 || status >= http.StatusInternalServerError {
		return err
	}
	b, err := json.Marshal(problem{p.publicURL + "/docs/errors#" + e.Code, http.StatusText(status), status, e.Message, e.Code, requestID(c), e.Fields})
	if err != nil {
		return err
	}
	return c.Blob(status, "application/problem+json", b)
}
