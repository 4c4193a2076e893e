package gateway

import (
	"testing"

	"weir/internal/catalogue"
	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/tenants"
)

func TestACallIsTranslatedForEachModelThatMayServeIt(t *testing.T) {
	body, err := jsonbody.ParseObject([]byte(`{"model":"smart","temperature":0.5,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	call := call{form: formAt(wire.Chat), body: body}
	for _, c := range []struct{ model, temperature string }{{"claude-sonnet-4-5", "0.5"}, {"claude-opus-4-8", ""}, {"claude-sonnet-4-5", "0.5"}} {
		if err := call.translate(candidate{Route: &tenants.Route{}, model: c.model, in: wire.Messages}); err != nil {
			t.Fatal(err)
		}
		if got := string(call.translated.Get("temperature")); got != c.temperature {
			t.Errorf("%s is sent the temperature %q, want %q", c.model, got, c.temperature)
		}
	}
}

// Mistral answers 422 to stream_options.include_usage, and sends usage always.
func TestTheUsageOfAStreamIsAskedForWhereItMayBe(t *testing.T) {
	for _, c := range []struct{ url, body, want string }{
		{"https://api.openai.com/v1", `{"stream":true}`, `{"include_usage":true}`},
		{"https://api.openai.com/v1", `{"stream":true,"stream_options":{"x":1,"include_usage":false}}`, `{"x":1,"include_usage":true}`},
		{"https://api.mistral.ai/v1", `{"stream":true}`, ""},
		{"https://api.mistral.ai/v1", `{"stream":true,"stream_options":{"include_usage":true}}`, "{}"},
	} {
		o, err := jsonbody.ParseObject([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		err = askForUsage(o, candidate{Route: &tenants.Route{Endpoint: catalogue.Endpoint{BaseURL: c.url}}})
		if got := string(o.Get("stream_options")); err != nil || got != c.want {
			t.Errorf("%s %s: got %q, %v", c.url, c.body, got, err)
		}
	}
}
