package web

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
)

// How often a tenant's books are looked at, and how often the session of an
// open page.
const (
	lookEvery    = time.Second
	sessionEvery = 15 * time.Second
)

// live answers GET /live: server-sent events that say when the tenant's books
// moved, and never what. It ends when the page goes, the session ends or the
// process stops.
func (p *Pages) live(c echo.Context, who auth.Person) error {
	r, res := c.Request(), c.Response()
	if r.Method == http.MethodHead {
		return c.NoContent(http.StatusNoContent)
	}
	moved, leave, err := p.watches.join(who.Tenant)
	if err != nil {
		return err
	}
	defer leave()
	res.Header().Set(echo.HeaderContentType, "text/event-stream")
	res.Header().Set("X-Accel-Buffering", "no")
	res.WriteHeader(http.StatusOK)
	say := func(text string) bool {
		_, err := io.WriteString(res, text)
		return err == nil && http.NewResponseController(res).Flush() == nil
	}
	check := time.NewTicker(p.sessionEvery)
	defer check.Stop()
	token := p.cookie.token(r)
	for open := say("retry: 3000\n\n"); open; {
		select {
		case <-r.Context().Done():
			return nil
		case _, still := <-moved:
			if !still {
				say("event: ended\ndata: stopping\n\n")
				return nil
			}
			open = say("event: moved\ndata: books\n\n")
		case <-check.C:
			alive, err := p.sessions.Alive(r.Context(), token)
			if err == nil && !alive {
				say("event: ended\ndata: session\n\n")
				return nil
			}
			open = say(": \n\n")
		}
	}
	return nil
}

// End lets go of every open page: the process stops.
func (p *Pages) End() { p.watches.stop() }
