package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

func TestACallMayWaitForRoomInItsPlan(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("in its turn, as long as its client and its key are there", func(t *testing.T) { inTurn(t, s) })
	t.Run("a hundred of a customer at the most", func(t *testing.T) { aHundred(t, s) })
	t.Run("not where it cannot fit, nor for the provider", func(t *testing.T) { cannotFit(t, s) })
}

// patient sends a call that may wait, and tells its status: 0 where its client
// left.
func patient(ctx context.Context, t *testing.T, s *stack.Stack, key, name, wait string) <-chan stack.Answer {
	t.Helper()
	req, err := s.Request(ctx, "POST", "/v1/chat/completions", key, strings.Replace(body(false), "{", fmt.Sprintf(`{"user": %q, `, name), 1))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Weir-Max-Wait-Ms", wait)
	out := make(chan stack.Answer, 1)
	go func() {
		a, _ := s.Send(req)
		out <- a
	}()
	return out
}

// served are those whose calls arrived at the provider, in their order. None
// brought along how long it may wait.
func served(t *testing.T, up *upstreamtest.Upstream) (names []string) {
	t.Helper()
	for _, c := range up.Calls() {
		if c.Header.Get("X-Weir-Max-Wait-Ms") != "" {
			t.Error("the provider sees how long a call may wait")
		}
		if _, rest, found := strings.Cut(string(c.Body), `"user":"`); found {
			names = append(names, rest[:strings.IndexByte(rest, '"')])
		} else if _, rest, found := strings.Cut(string(c.Body), `"user": "`); found {
			names = append(names, rest[:strings.IndexByte(rest, '"')])
		}
	}
	return names
}

const each = 2000 // ms until there is room for one more

func inTurn(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 30}}})
	lost := s.AddKey(t, w)
	full := strings.Repeat(`,{"estimate": {"units": 1}}`, 30)
	s.Want(t, 200, "POST", "/v1/reservations:batch", w.Key, `{"reservations": [`+full[1:]+`]}`)
	inLine := func(n float64) {
		t.Helper()
		stack.Eventually(t, 10*time.Second, func() string {
			a := s.Call(t, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 1}, "dry_run": true}`)
			if ms, _ := a.JSON("retry_after_ms").(float64); ms <= n*each && len(served(t, up)) == 0 {
				return fmt.Sprintf("who comes now waits %v ms", ms)
			}
			return ""
		})
	}
	leaving, leave := context.WithCancel(t.Context())
	first := patient(t.Context(), t, s, w.Key, "first", "20000")
	inLine(1)
	gone := patient(leaving, t, s, w.Key, "gone", "20000")
	inLine(2)
	revoked := patient(t.Context(), t, s, lost.Text("secret"), "revoked", "20000")
	inLine(3)
	last := patient(t.Context(), t, s, w.Key, "last", "20000")
	inLine(3.5)
	leave()
	s.Want(t, 200, "POST", "/api/v1/api-keys/"+lost.Text("id")+"/revoke", w.ManagementKey, nil)
	for name, want := range map[<-chan stack.Answer]int{first: 200, gone: 0, revoked: 401, last: 200} {
		if a := <-name; a.Status != want {
			t.Errorf("got %s, want %d", a, want)
		}
	}
	if got := served(t, up); !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("the provider served %q", got)
	}
}

func aHundred(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	slot := s.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, fmt.Sprintf(`{"customer": %q, "model": "test-small", "estimate": {"input_tokens": 1}}`, w.Customer)).Text("id")
	var refused, passed atomic.Int64
	answers := make([]<-chan stack.Answer, 110)
	for i := range answers {
		answers[i] = patient(t.Context(), t, s, w.Key, "crowd", "60000")
	}
	all := make(chan string, len(answers))
	for _, a := range answers {
		go func() {
			switch got := <-a; {
			case got.Status == http.StatusOK:
				passed.Add(1)
			case got.Status == http.StatusTooManyRequests && got.Text("error.code") == "concurrency_limit_exceeded":
				refused.Add(1)
			default:
				all <- got.String()
				return
			}
			all <- ""
		}()
	}
	stack.Eventually(t, 20*time.Second, func() string {
		if n := refused.Load(); n != 10 || passed.Load() != 0 {
			return fmt.Sprintf("%d are refused at once, %d passed", n, passed.Load())
		}
		return ""
	})
	s.Want(t, 200, "POST", "/v1/reservations/"+slot+"/cancel", w.ManagementKey, nil)
	for range answers {
		if wrong := <-all; wrong != "" {
			t.Error(wrong)
		}
	}
	if refused.Load() != 10 || passed.Load() != 100 {
		t.Errorf("%d were refused, %d passed", refused.Load(), passed.Load())
	}
}

func cannotFit(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{
		Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 100}},
		ProviderLimit: []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 6}},
	})
	wants := func(status int, code, wait string) {
		t.Helper()
		if a := <-patient(t.Context(), t, s, w.Key, "one", wait); a.Status != status || a.Text("error.code") != code {
			t.Errorf("waiting %q: %s", wait, a)
		}
	}
	for _, wait := range []string{"60001", "-1", "1.5", "soon"} {
		wants(400, "invalid_max_wait", wait)
	}
	for range 6 {
		wants(200, "", "0")
	}
	wants(503, "provider_capacity", "60000") // the provider has room in ten seconds: nobody waits that long for it
	full := `{"reservations": [` + strings.Repeat(`,{"estimate": {"units": 1}}`, 100)[1:] + `]}`
	stack.Eventually(t, 20*time.Second, func() string { // on a slow machine there is room again by then
		s.Want(t, 200, "POST", "/v1/reservations:batch", w.Key, full)
		if a := <-patient(t.Context(), t, s, w.Key, "one", "100"); a.Status != 429 || a.Text("error.code") != "rate_limit_exceeded" {
			return a.String()
		}
		return ""
	})
}
