package gateway

import (
	"testing"

	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
)

func TestACallIsTranslatedForEachModelThatMayServeIt(t *testing.T) {
	body, err := jsonbody.ParseObject([]byte(`{"model":"smart","temperature":0.5,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	call := call{form: formAt(wire.Chat), body: body}
	for _, c := range []struct{ model, temperature string }{{"claude-sonnet-4-5", "0.5"}, {"claude-opus-4-8", ""}, {"claude-sonnet-4-5", "0.5"}} {
		if err := call.translate(candidate{model: c.model, in: wire.Messages}); err != nil {
			t.Fatal(err)
		}
		if got := string(call.translated.Get("temperature")); got != c.temperature {
			t.Errorf("%s is sent the temperature %q, want %q", c.model, got, c.temperature)
		}
	}
}
