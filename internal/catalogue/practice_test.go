package catalogue

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/internal/catalogue/mimic"
	"weir/internal/outbound"
)

// practise makes one call of the practice provider.
func practise(t *testing.T, method, route, body string) (int, string) {
	t.Helper()
	p, ok := Lookup("practice")
	if !ok {
		t.Fatal("there is no practice provider")
	}
	guard := outbound.New(outbound.Policy{})
	defer guard.Close()
	resp, err := NewClient(guard).Do(context.Background(), Endpoint{Provider: p}, method, route, http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestThePracticeProviderServesEveryRouteItIsSaidToAndSaysThatNoModelWasAsked(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		RouteChat:        `{"model":"practice-small","messages":[{"role":"user","content":"Hi"}]}`,
		RouteCompletions: `{"model":"practice-small","prompt":"Hi"}`,
		RouteResponses:   `{"model":"practice-small","input":"Hi"}`,
		RouteMessages:    `{"model":"practice-small","max_tokens":200,"messages":[{"role":"user","content":"Hi"}]}`,
		RouteCountTokens: `{"model":"practice-small","messages":[{"role":"user","content":"Hi"}]}`,
		RouteEmbeddings:  `{"model":"practice-small","input":"Hi"}`,
		RouteImages:      `{"model":"practice-small","prompt":"Hi"}`,
		RouteSpeech:      `{"model":"practice-small","voice":"x","input":"Hi"}`,
		RouteModerations: `{"model":"practice-small","input":"Hi"}`,
	}
	p, _ := Lookup("practice")
	for route, body := range bodies {
		if !p.Serves(route) {
			t.Errorf("%s is not served", route)
		}
		status, got := practise(t, http.MethodPost, route, body)
		if status != 200 || route != RouteSpeech && !json.Valid([]byte(got)) {
			t.Errorf("%s: %d %s", route, status, got)
		}
		if !mimic.Streams(route) {
			continue
		}
		if !strings.Contains(got, "no model was asked") {
			t.Errorf("%s does not say what it is: %s", route, got)
		}
		if status, got = practise(t, http.MethodPost, route, strings.Replace(body, "{", `{"stream":true,`, 1)); status != 200 || !strings.Contains(got, "model ") || !strings.HasPrefix(strings.TrimPrefix(got, "event: "), map[string]string{RouteMessages: "message_start", RouteResponses: "response.created"}[route]) {
			t.Errorf("%s, streamed: %d %s", route, status, got)
		}
	}
	if status, got := practise(t, http.MethodGet, "/models/practice-small", ""); status != 200 || !strings.Contains(got, `"id":"practice-small"`) {
		t.Errorf("a model: %d %s", status, got)
	}
	for _, route := range []string{RouteChat, RouteMessages} {
		if status, got := practise(t, http.MethodPost, route, `{}`); status != 400 || !strings.Contains(got, "invalid_request_error") {
			t.Errorf("%s with nothing: %d %s", route, status, got)
		}
	}
	if status, _ := practise(t, http.MethodPost, "/fine_tuning/jobs", `{}`); status != 404 {
		t.Errorf("an unknown route: %d", status)
	}
}

func TestThePracticeProviderSaysNoMoreThanItIsAllowed(t *testing.T) {
	t.Parallel()
	_, got := practise(t, http.MethodPost, RouteChat, `{"model":"practice-small","max_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`)
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Choices[0].Finish != "length" || answer.Usage.Completion != 3 || answer.Choices[0].Message.Content != "This is Weir's " {
		t.Fatalf("%v, %s", err, got)
	}
}
