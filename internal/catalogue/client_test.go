package catalogue

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/outbound"
)

const canary = "sk-canary-0123456789"

// seen is a provider that keeps what it was sent.
type seen struct {
	mu    sync.Mutex
	calls []*http.Request
}

func (s *seen) last(t *testing.T) *http.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 {
		t.Fatal("nothing was sent")
	}
	return s.calls[len(s.calls)-1]
}

// vendor is an endpoint of a provider at a server of the test's.
func vendor(t *testing.T, slug string, answer http.HandlerFunc) (*Client, Endpoint, *seen) {
	t.Helper()
	s := &seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls = append(s.calls, r)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	t.Cleanup(guard.Close)
	p, known := Lookup(slug)
	if !known {
		t.Fatalf("no provider %s", slug)
	}
	return NewClient(guard), Endpoint{Tenant: uuid.New(), Provider: p, BaseURL: server.URL + "/v1", Secret: keyring.NewSecret(canary)}, s
}

func ok(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

func TestEveryProvidersCallCarriesItsCredentialInItsFormAndNoOther(t *testing.T) {
	for _, p := range Providers() {
		if p.Practice {
			continue
		}
		t.Run(p.Slug, func(t *testing.T) {
			c, e, s := vendor(t, p.Slug, ok("{}"))
			sent := http.Header{
				"authorization": {"Bearer stolen"}, "X-Api-Key": {"stolen"}, "api-key": {"stolen"}, "Cookie": {"stolen"}, "Connection": {"authorization"},
				"anthropic-beta": {"tools-x"}, "Te": {"trailers"}, "Content-Type": {"application/json"},
			}
			resp, err := c.Do(t.Context(), e, http.MethodPost, RouteChat, sent, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			want := map[Auth]string{AuthBearer: "Authorization: Bearer " + canary, AuthAnthropic: "X-Api-Key: " + canary, AuthAPIKey: "Api-Key: " + canary}[p.Auth]
			var carried []string
			h := s.last(t).Header
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Connection", "Te"} {
				for _, v := range h[name] {
					carried = append(carried, name+": "+v)
				}
			}
			if diff := cmp.Diff([]string{want}, carried); diff != "" {
				t.Error(diff)
			}
			if got := h.Get("Anthropic-Version"); (got == AnthropicVersion) != (p.Form == Anthropic) {
				t.Errorf("anthropic-version %q", got)
			}
			if h.Get("Anthropic-Beta") != "tools-x" || h.Get("Accept-Encoding") != "" {
				t.Errorf("got %v", h)
			}
		})
	}
}

func TestACallersOwnAnthropicVersionIsKept(t *testing.T) {
	c, e, s := vendor(t, "anthropic", ok("{}"))
	resp, err := c.Do(t.Context(), e, http.MethodPost, RouteMessages, http.Header{"anthropic-version": {"2024-01-01"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := s.last(t).Header["Anthropic-Version"]; !slices.Equal(got, []string{"2024-01-01"}) {
		t.Errorf("%q", got)
	}
}

func TestEveryProvidersRowIsWhole(t *testing.T) {
	slugs := map[string]bool{}
	for _, p := range Providers() {
		route := map[Form]string{OpenAI: RouteChat, Anthropic: RouteMessages}[p.Form]
		if slugs[p.Slug] || p.Name == "" || p.Zone == "" || p.Auth == "" || !p.Serves(route) || p.Serves("/files") {
			t.Errorf("%+v", p)
		}
		if p.Practice == p.FailuresCount && p.NeedsSecret {
			t.Errorf("%s: who is not known to let failures go counts them", p.Slug)
		}
		if p.BaseURL == "" && !p.NeedsBaseURL && !p.Practice {
			t.Errorf("%s is nowhere", p.Slug)
		}
		if at, known := At(p.BaseURL); p.BaseURL != "" && (!known || at.Slug != p.Slug) {
			t.Errorf("%s is not found at its own address", p.Slug)
		}
		slugs[p.Slug] = true
	}
}

func TestACustomKeyOfAKnownVendorIsTheVendors(t *testing.T) {
	custom, _ := Lookup("custom")
	for base, want := range map[string]string{
		"https://api.groq.com/openai/v1": "groq", "https://API.GROQ.COM/x": "groq", "https://us.googleapis.com/v1": "google", "https://main.openai.azure.com/openai/v1": "azure-openai",
		"https://api.groq.com.evil.example/v1": "custom", "https://llm.example.com/v1": "custom", "": "custom",
	} {
		if got := (Endpoint{Provider: custom, BaseURL: base}).Vendor(); got.Slug != want || !got.FailuresCount {
			t.Errorf("%s: %s", base, got.Slug)
		}
	}
	if q := QuirksOf("https://api.groq.com/openai/v1"); !q.RequestsPerDay {
		t.Error(q)
	}
}

func TestModelsAreReadAsEachVendorListsThem(t *testing.T) {
	pages := map[string]string{
		"":         `{"data":[{"id":"claude-b"}],"has_more":true,"last_id":"claude-b"}`,
		"claude-b": `{"data":[{"id":"claude-a"}],"has_more":false,"last_id":"claude-a"}`,
	}
	for name, c := range map[string]struct {
		slug   string
		answer http.HandlerFunc
		want   []string
		calls  int
	}{
		"OpenAI":                 {"openai", ok(`{"data":[{"id":"b"},{"id":"a"},{"id":"a"},{"id":"with space"},{"id":"with\r\nbreak"},{"id":"nul\u0000"}]}`), []string{"a", "b"}, 1},
		"Google":                 {"google", ok(`{"data":[{"id":"models/gemini-x"}]}`), []string{"gemini-x"}, 1},
		"Together":               {"together", ok(` [{"id":"meta/llama"}]`), []string{"meta/llama"}, 1},
		"Anthropic":              {"anthropic", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, pages[r.URL.Query().Get("after_id")]) }, []string{"claude-a", "claude-b"}, 2},
		"a list that never ends": {"anthropic", ok(`{"data":[{"id":"again"}],"has_more":true,"last_id":"again"}`), []string{"again"}, mostPages},
		"OpenRouter":             {"openrouter", ok(`{"data":[{"id":"x/y:free"}]}`), []string{"x/y:free"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.answer
			if c.slug == "openrouter" { // the key's own data is an object
				answer = func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "/key") {
						fmt.Fprint(w, `{"data":{"label":"x"}}`)
						return
					}
					c.answer(w, r)
				}
			}
			client, e, s := vendor(t, c.slug, answer)
			got, err := client.Models(t.Context(), e)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" || len(s.calls) != c.calls {
				t.Errorf("%v, %d calls, %s", err, len(s.calls), diff)
			}
		})
	}
}

func TestAKeyThatIsNoneIsToldFromAProviderThatIsOut(t *testing.T) {
	for name, c := range map[string]struct {
		slug   string
		status int
		body   string
		want   string
	}{
		"401":                           {"openai", 401, `{"error":{"message":"Incorrect API key provided: ` + canary + `"}}`, "provider_key_invalid"},
		"403":                           {"anthropic", 403, `{}`, "provider_key_invalid"},
		"Google's 400":                  {"google", 400, `[{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}]`, "provider_key_invalid"},
		"another 400":                   {"google", 400, `{}`, "provider_check_failed"},
		"OpenRouter's list is public":   {"openrouter", 401, `{}`, "provider_key_invalid"},
		"500":                           {"groq", 500, `oops`, "provider_check_failed"},
		"no list":                       {"mistral", 200, `<html>`, "provider_check_failed"},
		"a list that is something else": {"together", 200, `[1, 2]`, "provider_check_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			client, e, _ := vendor(t, c.slug, func(w http.ResponseWriter, r *http.Request) {
				if c.slug == "openrouter" && strings.HasSuffix(r.URL.Path, "/models") {
					fmt.Fprint(w, `{"data":[]}`)
					return
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err := client.Models(t.Context(), e)
			if err == nil || fault.Of(err).Code != c.want || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestATrialIsTheSmallestCallOfEachForm(t *testing.T) {
	for slug, want := range map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "azure-openai": "/v1/chat/completions", "custom-anthropic": "/v1/messages"} {
		client, e, s := vendor(t, slug, ok(`{}`))
		if err := client.Try(t.Context(), e, "m"); err != nil {
			t.Errorf("%s: %v", slug, err)
		}
		if got := s.last(t).URL.Path; got != want || len(s.calls) != 1 {
			t.Errorf("%s: %s, %d calls", slug, got, len(s.calls))
		}
	}
	client, e, s := vendor(t, "anthropic", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	if err := client.Try(t.Context(), e, "m"); fault.Of(err).Code != "provider_check_failed" || len(s.calls) != 1 {
		t.Errorf("%v after %d calls", err, len(s.calls))
	}
}

// What an upstream sends beside its answer: threats A37 and A52.
func TestAnAnswersHeadersAreBoundedAndItsBodyComesAsItWasSent(t *testing.T) {
	big := strings.Repeat("x", outbound.HeaderLimit)
	client, e, _ := vendor(t, "openai", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Big", big) })
	if _, err := client.Do(t.Context(), e, http.MethodGet, "/models", nil, nil); err == nil || //nolint:bodyclose // there is none
		fault.Of(err).Code != "upstream_invalid_response" || fault.Of(err).Kind != fault.Upstream {
		t.Errorf("headers of more than 32 KiB: %v", err)
	}
	bomb := "\x1f\x8b not really packed"
	client, e, s := vendor(t, "openai", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "1"})
		w.Header().Set("Alt-Svc", `h3="evil.example:443"`)
		fmt.Fprint(w, bomb)
	})
	for range 2 {
		resp, err := client.Do(t.Context(), e, http.MethodGet, "/models", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != bomb {
			t.Errorf("unpacked: %q, %v", body, err)
		}
	}
	if h := s.last(t).Header; h.Get("Cookie") != "" || h.Get("Accept-Encoding") != "" {
		t.Errorf("sent %v", h)
	}
}
