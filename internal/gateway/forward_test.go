package gateway

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/catalogue"
	"weir/internal/fault"
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

// TestACallIsSaidOnceBeforeItIsDecided, however many models of another form may
// serve it: no limit of its caller was looked at.
func TestACallIsSaidOnceBeforeItIsDecided(t *testing.T) {
	turns := strings.Repeat(`{"role":"user","content":"some words of a conversation"},{"role":"assistant","content":"and an answer"},`, 2000)
	c := chatting(t, "["+strings.TrimSuffix(turns, ",")+"]")
	list := on(10, func(i int, c *candidate) { c.in, c.model = wire.Messages, fmt.Sprintf("claude-%d", i) })
	once := allocated(func() {
		if err := chatting(t, "["+strings.TrimSuffix(turns, ",")+"]").translate(list[0]); err != nil {
			t.Fatal(err)
		}
	})
	prepared := allocated(func() {
		if left, err := c.prepare(list); err != nil || len(left) != len(list) {
			t.Fatalf("%d of %d models are left: %v", len(left), len(list), err)
		}
	})
	if prepared > 2*once {
		t.Errorf("a call takes %d KiB once, and %d KiB before it is decided", once>>10, prepared>>10)
	}
	if c.translatedFor.messages.Model != list[0].model {
		t.Errorf("it is said for %q, not for the first", c.translatedFor.messages.Model)
	}
}

// TestACallThatCannotBeSaidGoesWhereItNeedNotBe: several answers are asked for where the
// provider speaks the call's own form.
func TestACallThatCannotBeSaidGoesWhereItNeedNotBe(t *testing.T) {
	body, err := jsonbody.ParseObject([]byte(`{"messages":[{"role":"user","content":"Hi"}],"n":2}`))
	if err != nil {
		t.Fatal(err)
	}
	call := &call{form: formAt(wire.Chat), body: body}
	list := on(4, func(i int, c *candidate) { c.in = []wire.Form{wire.Messages, wire.Chat}[i%2] })
	left, err := call.prepare(list)
	if err != nil || len(left) != 2 || left[0].group != 1 || left[1].group != 3 || list[0].group != 0 {
		t.Errorf("%d are left: %v", len(left), err)
	}
	if _, err := call.prepare([]candidate{list[0], list[2]}); fault.Of(err).Kind != fault.Invalid {
		t.Errorf("where nobody can serve it: %v", err)
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
