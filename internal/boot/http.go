package boot

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"weir/internal/id"
)

// bodyPause is how long a client may take between two pieces of its body.
const bodyPause = 30 * time.Second

// ServeHTTP answers the probes itself, and the rest once the process is ready.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := a.ready.Load()
	switch {
	case r.URL.Path == "/livez":
		writeStatus(w, http.StatusOK, "alive")
	case r.URL.Path == "/readyz" && a.Ready():
		a.readyz(w)
	case r.URL.Path == "/readyz":
		writeStatus(w, http.StatusServiceUnavailable, "not ready")
	case handler == nil:
		w.Header().Set("Retry-After", "5")
		writeStatus(w, http.StatusServiceUnavailable, "starting")
	default:
		if a.ended.Load() {
			w.Header().Set("Connection", "close")
		}
		(*handler).ServeHTTP(w, r)
	}
}

// readyz names what is degraded; neither Postgres nor NATS makes a process that
// has started unready.
func (a *API) readyz(w http.ResponseWriter) {
	status := "ready"
	if err := a.spool.Health(); err != nil {
		status = "degraded: the spool cannot be written"
	}
	writeStatus(w, http.StatusOK, status)
}

func writeStatus(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// newEcho is the router with what every surface shares: whose address a request
// is from, its id, its line in the log, and that a panic ends one request only.
func newEcho(proxies []netip.Prefix, log *slog.Logger) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = ipExtractor(proxies)
	e.Use(requestID, logged(log), middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisablePrintStack: true,
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			log.Error("panic", "request_id", c.Response().Header().Get(echo.HeaderXRequestID), "error", err, "stack", string(stack[:min(len(stack), 1000)]))
			return err
		},
	}), patient)
	return e
}

func ipExtractor(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	o := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		_, n, err := net.ParseCIDR(p.String())
		if err == nil {
			o = append(o, echo.TrustIPRange(n))
		}
	}
	return echo.ExtractIPFromXFFHeader(o...)
}

// requestID gives every request an id of our own; what the client sent is not
// read.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderXRequestID, id.Request.Format(id.New()))
		return next(c)
	}
}

// logged writes one line a request: the route and never the query, which may
// hold what somebody should not have put there.
func logged(log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			began := time.Now()
			err := next(c)
			if err != nil {
				c.Error(err)
			}
			log.Info("request", "request_id", c.Response().Header().Get(echo.HeaderXRequestID), "method", c.Request().Method,
				"route", c.Path(), "status", c.Response().Status, "ms", time.Since(began).Milliseconds(), "bytes", c.Response().Size)
			return nil
		}
	}
}

// patient lets a body come slowly, but not too slowly.
func patient(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &slowBody{ReadCloser: r.Body, control: http.NewResponseController(c.Response())}
		}
		return next(c)
	}
}

// slowBody gives each read of a body its own deadline, and takes it away at the
// end, so that it never ends a stream that goes the other way.
type slowBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *slowBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(bodyPause)) // where there is none, the server's own timeouts hold
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
