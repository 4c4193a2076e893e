package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// HeaderLimit is the most that an answer's headers may take.
const HeaderLimit = 32 << 10

// clients keeps one transport a tenant, so that no tenant's connection is ever
// reused for another, even to the same host.
type clients struct {
	mu sync.Mutex
	by map[uuid.UUID]*http.Client
}

// Client is the guarded client of one tenant. Its transport never follows a
// redirect, uses no proxy, does not decompress, and gives up on a silent peer.
// The deadline for a whole exchange is the request's context.
func (g *Guard) Client(tenant uuid.UUID) *http.Client {
	g.clients.mu.Lock()
	defer g.clients.mu.Unlock()
	if c, ok := g.clients.by[tenant]; ok {
		return c
	}
	if g.clients.by == nil {
		g.clients.by = map[uuid.UUID]*http.Client{}
	}
	c := &http.Client{
		Transport:     g.transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	g.clients.by[tenant] = c
	return c
}

func (g *Guard) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: g.control}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  120 * time.Second,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		MaxResponseHeaderBytes: HeaderLimit,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// Close drops every idle connection.
func (g *Guard) Close() {
	g.clients.mu.Lock()
	defer g.clients.mu.Unlock()
	for _, c := range g.clients.by {
		c.CloseIdleConnections()
	}
}

// Fault is the error of a failed exchange as a caller may see it: Upstream,
// with a code that says what happened and nothing of the address.
func Fault(err error) *fault.Error {
	var block *BlockedError
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(err, &block):
		return fault.New(fault.Upstream, "upstream_blocked", "The provider's address is not one that may be called.").Because(err)
	case errors.As(err, &cert):
		return fault.New(fault.Upstream, "upstream_tls_failed", "The provider's certificate could not be verified.").Because(err)
	case errors.As(err, &dns):
		return fault.New(fault.Upstream, "upstream_unreachable", "The provider's host name could not be resolved.").Because(err)
	case tooManyHeaders(err):
		return fault.New(fault.Upstream, "upstream_invalid_response", "The provider's answer has more headers than are taken.").Because(err)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fault.New(fault.Upstream, "upstream_timeout", "The provider did not answer in time.").Because(err)
	}
	return fault.New(fault.Upstream, "upstream_unreachable", "The provider could not be reached.").Because(err)
}

// tooManyHeaders knows net/http's errors of HTTP/1 and HTTP/2 by their words:
// it has no values for them.
func tooManyHeaders(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded") || strings.Contains(err.Error(), "response header list larger")
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
