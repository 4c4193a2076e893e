package whole

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestAChatBodyThatTwoReadersCouldReadDifferentlyIsRefused holds the gateway to
// what it checks of a chat completion: in OpenAI's form, with the parameter
// named, and without a word to the provider.
func TestAChatBodyThatTwoReadersCouldReadDifferentlyIsRefused(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}}})
	const messages = `"messages":[{"role":"user","content":"Hi"}]`
	with := func(members string) string { return `{"model":"test-small",` + messages + `,` + members + `}` }
	whole := []string{`0`, `-1`, `1.5`, `1e2`, `"5"`, `true`, `[]`, `{}`, `9223372036854775808`, `1` + strings.Repeat("0", 400)}
	cases := []struct {
		body, param, code string
		status            int
	}{
		{``, "", "bad_json", 400},
		{`[]`, "", "wrong_type", 400},
		{`"x"`, "", "wrong_type", 400},
		{`{"model":`, "", "bad_json", 400},
		{`{"model":"test-small",` + messages + `} {}`, "", "bad_json", 400},
		{"{\"model\":\"\xff\"," + messages + "}", "", "bad_json", 400},
		{strings.Repeat("[", 10_000), "", "too_deep", 400},
		{with(strings.TrimSuffix(strings.Repeat(`"x":{`, 100), "") + `"x":1` + strings.Repeat("}", 100)), "", "too_deep", 400},
		{`{` + messages + `}`, "model", "missing_required_parameter", 400},
		{`{"model":null,` + messages + `}`, "model", "missing_required_parameter", 400},
		{`{"model":7,` + messages + `}`, "model", "wrong_type", 400},
		{`{"model":["test-small"],` + messages + `}`, "model", "wrong_type", 400},
		{`{"model":"test-small"}`, "messages", "wrong_type", 400},
		{`{"model":"test-small","messages":"Hi"}`, "messages", "wrong_type", 400},
		{`{"model":"test-small","messages":null}`, "messages", "wrong_type", 400},
		{with(`"model":"test-large"`), "model", "ambiguous_json", 400},
		{with(`"MODEL":"test-large"`), "MODEL", "ambiguous_json", 400},
		{with(`"Max_Tokens":1,"max_tokens":2`), "max_tokens", "ambiguous_json", 400},
		{with(`"tools":[{"type":"function","type":"other"}]`), "tools[0].type", "ambiguous_json", 400},
		{with(`"stream":"true"`), "stream", "wrong_type", 400},
		{with(`"stream":1`), "stream", "wrong_type", 400},
		{with(`"stream":true,"stream_options":[]`), "stream_options", "wrong_type", 400},
		{with(`"stream":true,"stream_options":{"include_usage":"yes"}`), "stream_options.include_usage", "wrong_type", 400},
		{with(`"stream":true,"stream_options":{"include_usage":false,"Include_Usage":true}`), "stream_options.Include_Usage", "ambiguous_json", 400},
		{with(`"n":129`), "n", "out_of_range", 400},
		{with(`"n":100,"max_tokens":900000000`), "n", "out_of_range", 400},
		{with(`"api_key":"sk-x"`), "api_key", "unsupported_parameter", 400},
		{with(`"base_url":"http://169.254.169.254"`), "base_url", "unsupported_parameter", 400},
		{with(`"api_base":null`), "api_base", "unsupported_parameter", 400},
		{`{"model":"` + strings.Repeat("x", 1<<20) + `",` + messages + `}`, "model", "model_not_found", 404},
		{`{"model":"TEST-SMALL",` + messages + `}`, "model", "model_not_found", 404},
		{`{"model":" test-small",` + messages + `}`, "model", "model_not_found", 404},
		{`{"model":"test-small\u200b",` + messages + `}`, "model", "model_not_found", 404},
		{`{"model":"openai/test-small",` + messages + `}`, "model", "model_not_found", 404},
		{`{"model":"test-small","messages":[{"role":"user","content":"` + strings.Repeat("x", 32<<20) + `"}]}`, "", "body_too_large", 413},
	}
	for _, name := range []string{"n", "max_tokens", "max_completion_tokens"} {
		for _, raw := range whole {
			cases = append(cases, struct {
				body, param, code string
				status            int
			}{with(fmt.Sprintf("%q:%s", name, raw)), name, "out_of_range", 400})
		}
	}
	for _, c := range cases {
		a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, c.body)
		if a.Status != c.status || a.Text("error.code") != c.code || a.Text("error.param") != c.param || !plainWords(a.Text("error.message")) || a.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %s, want %d %s of %q", brief(c.body), brief(a.String()), c.status, c.code, c.param)
		}
		if a.Header.Get("X-Request-Id") == "" || a.Header.Get("X-Ratelimit-Remaining-Requests") != "1000" {
			t.Errorf("%s: headers %v", brief(c.body), a.Header)
		}
	}
	if n := len(up.Calls()); n != 0 {
		t.Errorf("%d of the bodies reached the provider", n)
	}
}

// TestWhatWeirDoesNotKnowOfAChatBodyPassesThroughUntouched.
func TestWhatWeirDoesNotKnowOfAChatBodyPassesThroughUntouched(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	const body = `{"model":"test-small","messages":[{"role":"user","content":"Hi","x":1.50}],"temperature":0.10,"logit_bias":{"50256":-100},"reasoning":{"effort":"low"},"seed":12345678901234567890,"metadata":{"a":"b"}}`
	weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, body)
	if got := string(up.Last().Body); got != body {
		t.Errorf("the provider got\n%s\nof\n%s", got, body)
	}
}

// TestTheProviderSeesNothingOfTheClient: neither its key nor its headers.
func TestTheProviderSeesNothingOfTheClient(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	req, err := weir.Request(t.Context(), "POST", "/v1/chat/completions", w.Key, chat("test-small"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OpenAI-Organization", "OpenAI-Project", "X-Stainless-Lang", "Cookie", "X-Forwarded-For", "X-Api-Base", "Connection", "x-weir-tags"} {
		req.Header.Set(name, "from-the-client")
	}
	req.Header.Set("X-Weir-Tags", "team=search")
	if a, err := weir.Send(req); err != nil || a.Status != 200 {
		t.Fatal(a, err)
	}
	got := up.Last().Header
	want := http.Header{
		"Authorization": {"Bearer " + w.ProviderSecret}, "Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"weir"},
		"Content-Length": {fmt.Sprint(len(up.Last().Body))},
	}
	for name := range got {
		if want.Get(name) != got.Get(name) {
			t.Errorf("the provider got %s: %q", name, got.Get(name))
		}
	}
	if got.Get("Authorization") != want.Get("Authorization") {
		t.Error("the provider did not get its key")
	}
}
