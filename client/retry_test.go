package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// proxy stands before the installation and spoils what it is told to: the next
// requests, one after the other.
type proxy struct {
	*httptest.Server
	connections, requests atomic.Int64

	mu    sync.Mutex
	plans []spoil
}

// spoil handles one request in its own way; next reaches the installation.
type spoil func(w http.ResponseWriter, r *http.Request, next http.Handler)

func newProxy(t *testing.T) *proxy {
	t.Helper()
	target, err := url.Parse(weir.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	next := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.mu.Lock()
		var plan spoil
		if len(p.plans) > 0 {
			plan, p.plans = p.plans[0], p.plans[1:]
		}
		p.mu.Unlock()
		if plan != nil {
			plan(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}))
	p.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			p.connections.Add(1)
		}
	}
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) spoil(plans ...spoil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = plans
}

// dropped lets the request through and loses the answer.
func dropped(_ http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// cut ends the connection before anything is done.
func cut(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// halved breaks off within the answer.
func halved(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	w.Header().Set("Content-Length", "100000")
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	panic(http.ErrAbortHandler)
}

// out is a balancer without a Weir behind it.
func out(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte("<html>no backend</html>"))
}

// lostAfter is an answer that says 502 after the work was done.
func lostAfter(w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	w.WriteHeader(http.StatusBadGateway)
}

func TestWhateverIsLostOnTheWayACallIsReservedAndSettledOnce(t *testing.T) {
	t.Parallel()
	for name, plans := range map[string][]spoil{
		"the answer is dropped":        {dropped},
		"the answer is dropped thrice": {dropped, dropped, dropped},
		"the connection is cut":        {cut, dropped},
		"the answer ends early":        {halved},
		"a balancer is out":            {out, lostAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, perDay(1000), atOnce)
			p := newProxy(t)
			c := newClient(t, p.URL, w.ManagementKey)
			p.spoil(plans...)
			r, err := c.Reserve(t.Context(), w.call(10))
			if err != nil {
				t.Fatal(err)
			}
			if used := w.used(t); used != 10 {
				t.Errorf("one call of 10 tokens holds %d", used)
			}
			p.spoil(plans...)
			if _, err := c.Extend(t.Context(), r.ID, time.Minute); err != nil {
				t.Error(err)
			}
			p.spoil(plans...)
			if _, err := c.Settle(t.Context(), r.ID, Result{Outcome: OK, Usage: Usage{InputTokens: 6}}); err != nil {
				t.Error(err)
			}
			if used := w.used(t); used != 6 {
				t.Errorf("one call of 6 tokens took %d", used)
			}
			p.spoil(plans...)
			verdicts, err := c.ReserveBatch(t.Context(), []Call{w.call(10)})
			if err != nil || verdicts[0].Err != nil {
				t.Fatalf("%v, %v", verdicts, err)
			}
			if used := w.used(t); used != 16 {
				t.Errorf("with a batch of one call of 10 tokens %d are used, want 16", used)
			}
		})
	}
}

func TestARefusalIsAnAnswerAndIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(10))
	p := newProxy(t)
	c := newClient(t, p.URL, w.ManagementKey)
	for _, tokens := range []int64{10, 5, 11, -1} { // admitted, refused until tomorrow, refused for ever, wrong
		p.requests.Store(0)
		_, _ = c.Reserve(t.Context(), w.call(tokens))
		if n := p.requests.Load(); n != 1 {
			t.Errorf("a call of %d tokens was sent %d times", tokens, n)
		}
	}
}

// answers is a server that answers each request with the next of a list, the
// last one for ever, and a client of it whose waits are noted and take no time.
func answers(t *testing.T, o Options, list ...func(http.ResponseWriter)) (c *Client, waits *[]time.Duration, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list[min(asked.Add(1), int64(len(list)))-1](w)
	}))
	t.Cleanup(s.Close)
	o.BaseURL, o.Key = s.URL, "k"
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	waits = &[]time.Duration{}
	now := time.Now()
	c.now = func() time.Time { return now }
	c.after = func(d time.Duration) (<-chan time.Time, func() bool) {
		*waits = append(*waits, d)
		now = now.Add(d)
		over := make(chan time.Time, 1)
		over <- now
		return over, func() bool { return true }
	}
	return c, waits, asked
}

func answer(status int, header, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestAStatedWaitIsObeyedToTheMillisecondAndNoRetryComesEarlier(t *testing.T) {
	t.Parallel()
	made := answer(201, "", `{"id": "rsv_1"}`)
	for name, of := range map[string]struct {
		answer  func(http.ResponseWriter)
		maxWait time.Duration
		wait    time.Duration // 0: not sent again
	}{
		"seconds in the header":             {answer(503, "3", ``), 0, 3 * time.Second},
		"milliseconds in the body":          {answer(503, "3", `{"code": "limiter_unavailable", "retry_after_ms": 2100}`), 0, 2100 * time.Millisecond},
		"longer than anybody waits":         {answer(503, "11", `{"code": "limiter_unavailable"}`), 0, 0},
		"our own rate limit":                {answer(429, "2", `{"code": "management_rate_limited"}`), 0, 2 * time.Second},
		"the same call being made":          {answer(409, "1", `{"code": "idempotency_in_flight"}`), 0, time.Second},
		"a conflict":                        {answer(409, "1", `{"code": "reservation_settled"}`), 0, 0},
		"a refusal":                         {answer(429, "1", `{"code": "rate_limit_exceeded", "retry_after_ms": 40}`), 0, 0},
		"a refusal that fits into the wait": {answer(429, "1", `{"code": "rate_limit_exceeded", "retry_after_ms": 40}`), time.Second, 40 * time.Millisecond},
		"a refusal that does not":           {answer(429, "2", `{"code": "rate_limit_exceeded", "retry_after_ms": 1001}`), time.Second, 0},
		"a refusal that nothing helps":      {answer(413, "", `{"code": "request_too_large"}`), time.Minute, 0},
		"providers that are full":           {answer(503, "1", `{"code": "provider_capacity", "retry_after_ms": 700}`), 0, 0},
	} {
		c, waits, asked := answers(t, Options{}, of.answer, made)
		_, err := c.Reserve(t.Context(), Call{MaxWait: of.maxWait})
		switch {
		case of.wait == 0:
			if err == nil || asked.Load() != 1 || len(*waits) != 0 {
				t.Errorf("%s: %v after %d tries and waits of %v", name, err, asked.Load(), *waits)
			}
		case err != nil || len(*waits) != 1 || (*waits)[0] < of.wait || (*waits)[0] > of.wait+of.wait/10+time.Millisecond:
			t.Errorf("%s: %v, waits of %v", name, err, *waits)
		}
	}
}

func TestRetriesAreFewAndSpreadAndKeepTheirKey(t *testing.T) {
	t.Parallel()
	c, waits, asked := answers(t, Options{}, answer(502, "", ``))
	if _, err := c.Reserve(t.Context(), Call{}); !errors.Is(err, ErrUnavailable) || asked.Load() != 4 {
		t.Errorf("%v after %d tries", err, asked.Load())
	}
	for i, d := range *waits {
		if most := firstPause << i; d < most/2 || d > most {
			t.Errorf("pause %d is %s, want %s to %s", i, d, most/2, most)
		}
	}
	c, _, asked = answers(t, Options{Retries: -1}, answer(502, "", ``))
	if _, err := c.Reserve(t.Context(), Call{}); err == nil || asked.Load() != 1 {
		t.Errorf("without retries it was sent %d times", asked.Load())
	}
	keys := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")]++
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer s.Close()
	c.base, c.retries = s.URL, 2
	for range 2 {
		_, _ = c.Reserve(t.Context(), Call{})
	}
	for key, n := range keys {
		if len(keys) != 2 || n != 3 || len(key) < 20 {
			t.Errorf("keys were sent so often: %v", keys)
		}
	}
}

func TestTheContextEndsAnyWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	c := newClient(t, s.URL, "k")
	began := time.Now()
	if _, err := c.Reserve(ctx, Call{}); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestATryThatHangsIsGivenUpAndMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(1000))
	p := newProxy(t)
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	p.spoil(func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		select {
		case <-r.Context().Done():
		case <-free:
		}
	})
	c, err := New(Options{BaseURL: p.URL, Key: w.ManagementKey, Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reserve(t.Context(), w.call(10)); err != nil {
		t.Error(err)
	}
	if used := w.used(t); used != 10 {
		t.Errorf("one call of 10 tokens holds %d", used)
	}
}

func TestAKeptReservationIsExtendedUntilItEnds(t *testing.T) {
	t.Parallel()
	var extended atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := extended.Add(1); n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if n == 5 {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer s.Close()
	c := newClient(t, s.URL, "k")
	ended := make(chan time.Duration, 100)
	c.after = func(d time.Duration) (<-chan time.Time, func() bool) {
		ended <- d
		over := make(chan time.Time, 1)
		over <- time.Time{}
		return over, func() bool { return true }
	}
	stop := c.KeepAlive(t.Context(), "rsv_1", 30*time.Second)
	deadline := time.After(10 * time.Second)
	for n := 0; n < 4; {
		select {
		case d := <-ended:
			if d == 10*time.Second {
				n++
			}
		case <-deadline:
			t.Fatal("no heartbeats")
		}
	}
	stop()
	stop()
	if n := extended.Load(); n > 5 {
		t.Errorf("extended %d times, though it ended at the fifth", n)
	}
}
