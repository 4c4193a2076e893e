package boot

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"weir/internal/id"
)

const (
	bodyPause  = 30 * time.Second // between two pieces of a client's body
	restPause  = 5 * time.Second  // for a body that nobody reads
	writePause = 30 * time.Second // for a client to take a piece of an answer
	writePiece = 64 << 10         // bytes
	probePause = 500 * time.Millisecond
)

// ServeHTTP answers the probes itself, and the rest once the process is ready.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := a.ready.Load()
	switch {
	case r.URL.Path == "/livez":
		writeStatus(w, http.StatusOK, "alive")
	case r.URL.Path == "/readyz" && a.Ready():
		a.readyz(r.Context(), w)
	case r.URL.Path == "/readyz":
		writeStatus(w, http.StatusServiceUnavailable, "not ready")
	case handler == nil:
		w.Header().Set("Retry-After", "5")
		writeStatus(w, http.StatusServiceUnavailable, "starting")
	default:
		// A body in chunks is the last of its connection: what a proxy in front
		// read as its end, and what we did, cannot differ then.
		if a.ended.Load() || len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		(*handler).ServeHTTP(w, r)
	}
}

// readyz names what is degraded; neither Postgres nor NATS makes a process that
// has started unready.
func (a *API) readyz(ctx context.Context, w http.ResponseWriter) {
	ctx, cancel := context.WithTimeout(ctx, probePause)
	defer cancel()
	var degraded []string
	if a.spool.Health() != nil {
		degraded = append(degraded, "the spool cannot be written")
	}
	if a.db.Ping(ctx) != nil {
		degraded = append(degraded, "Postgres does not answer")
	}
	if !a.queue.Connected() {
		degraded = append(degraded, "NATS is not connected")
	}
	if a.memory != nil && a.peers.Load() > 0 {
		degraded = append(degraded, "several API processes keep limits in memory, so each grants them in full: set REDIS_URL")
	}
	if a.redis != nil && a.redis.Out() {
		degraded = append(degraded, "Redis does not answer: limits are shared out")
	}
	if len(degraded) == 0 {
		writeStatus(w, http.StatusOK, "ready")
		return
	}
	writeStatus(w, http.StatusOK, "degraded: "+strings.Join(degraded, "; "))
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
			r, w := c.Request(), c.Response()
			log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("request_id", w.Header().Get(echo.HeaderXRequestID)), slog.String("method", r.Method),
				slog.String("route", c.Path()), slog.Int("status", w.Status), slog.Int64("ms", time.Since(began).Milliseconds()), slog.Int64("bytes", w.Size))
			return nil
		}
	}
}

// patient lets a body come slowly, but not too slowly, whether the handler
// reads it or answers without.
func patient(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody {
			return next(c)
		}
		body := &slowBody{ReadCloser: r.Body, control: http.NewResponseController(c.Response())}
		r.Body = body
		defer body.leave()
		return next(c)
	}
}

// slowBody gives each read of a body its own deadline, and takes it away at the
// end, so that it never ends a stream that goes the other way.
type slowBody struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.deadline(bodyPause)
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{}) // as above
	}
	return n, err
}

// leave bounds how long the server waits for what the handler did not read,
// which it throws away to use the connection again.
func (b *slowBody) leave() {
	if !b.ended {
		b.deadline(restPause)
	}
}

func (b *slowBody) deadline(d time.Duration) {
	_ = b.control.SetReadDeadline(time.Now().Add(d)) // where there is none, the server's own timeouts hold
}

// patientWriter gives each piece of an answer a time in which the client has to
// take it.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	managed bool // the handler sets deadlines of its own
}

// patiently serves h with patient writers.
func patiently(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}, r)
	})
}

func (w *patientWriter) Write(b []byte) (written int, err error) {
	for {
		piece := b[:min(len(b), writePiece)]
		w.extend()
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if b = b[len(piece):]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// WriteHeader begins the answer, whose end the server may write by itself.
func (w *patientWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// FlushError sends what is there.
func (w *patientWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// SetWriteDeadline leaves deadlines to a handler that wants its own.
func (w *patientWriter) SetWriteDeadline(t time.Time) error {
	w.managed = true
	return w.control.SetWriteDeadline(t)
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) extend() {
	if w.managed {
		return
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writePause)) // where there is none, writes do not hang
}
