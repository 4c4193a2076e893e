package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say how to reach Weir. BaseURL and Key are required; what is zero has
// the default that is named.
type Options struct {
	BaseURL  string        // such as https://weir.example
	Key      string        // a customer key, a client token, or a management key with decisions:write
	HTTP     *http.Client  // nil: one of its own, which keeps connections for use again and follows no redirect
	Timeout  time.Duration // of one try, beyond the wait for room; 10 s
	Retries  int           // after the first try, at most; 3, negative: none
	MaxPause time.Duration // the longest stated wait that is waited before a retry; 10 s
}

// Client speaks to one Weir with one key. It is safe for concurrent use, and is
// best made once: it keeps connections.
type Client struct {
	base, key         string
	http              *http.Client
	timeout, maxPause time.Duration
	retries           int

	now   func() time.Time
	after func(time.Duration) (<-chan time.Time, func() bool)
}

// New makes a client. It sends nothing yet.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("weir: the base URL is none such as https://weir.example")
	}
	if o.Key == "" {
		return nil, errors.New("weir: a key is needed")
	}
	c := &Client{
		base: strings.TrimRight(o.BaseURL, "/"), key: o.Key, http: o.HTTP, timeout: orDefault(o.Timeout, 10*time.Second),
		maxPause: orDefault(o.MaxPause, 10*time.Second), retries: max(orDefault(o.Retries, 3), 0), now: time.Now, after: timer,
	}
	if c.http == nil {
		c.http = connections()
	}
	return c, nil
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// connections is a client of its own: many at once to one host are kept. A
// redirect is an answer, so that the key goes nowhere else.
func connections() *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second,
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func timer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// sleep waits for d, or until ctx ends.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	over, stop := c.after(d)
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// pause is how long to wait before a try: what an answer states and up to a
// tenth more, or else a pause that doubles, of which a random half is taken
// away. So those who failed together do not come back together.
func pause(stated time.Duration, try int) time.Duration {
	if stated > 0 {
		return stated + rand.N(stated/10+time.Millisecond)
	}
	d := min(firstPause<<min(try, 10), lastPause)
	return d/2 + rand.N(d/2)
}
