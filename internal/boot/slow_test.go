package boot

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
)

// pipes is a listener whose connections are pipes, so that deadlines run on the
// bubble's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dialled is a client's end of a connection to a server as Run makes it.
func dialled(t *testing.T) net.Conn {
	t.Helper()
	e := newEcho(nil, slog.New(slog.DiscardHandler))
	e.POST("/refused", func(c echo.Context) error { return c.String(http.StatusUnauthorized, "no key") })
	e.POST("/read", func(c echo.Context) error {
		_, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return c.String(http.StatusBadRequest, "the body ended early")
		}
		return c.String(http.StatusOK, "ok")
	})
	e.GET("/large", func(c echo.Context) error {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, []byte(strings.Repeat("a", 1<<20)))
	})
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: patiently(e), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	go func() { _ = server.Serve(l) }()
	near, far := net.Pipe()
	l.conns <- far
	t.Cleanup(func() { _ = near.Close(); _ = server.Close() })
	return near
}

func TestABodyThatNeverComesIsNotWaitedForForEver(t *testing.T) {
	for name, head := range map[string]string{
		"refused before it is read": "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"read":                      "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"chunked":                   "POST /refused HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dialled(t)
				if _, err := io.WriteString(c, head); err != nil {
					t.Fatal(err)
				}
				_ = c.SetReadDeadline(time.Now().Add(time.Hour))
				if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("an hour later the connection is still held, and nothing was answered on it")
				}
			})
		})
	}
}

func TestAClientThatTakesNothingIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dialled(t)
		if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // of the bubble's clock
		if b, _ := io.ReadAll(c); len(b) > 1<<20 {
			t.Fatal("an hour later the whole answer is still there, and with it a goroutine and its memory")
		}
	})
}
