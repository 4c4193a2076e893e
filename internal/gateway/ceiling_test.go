package gateway

import (
	"slices"
	"testing"

	"weir/internal/catalogue"
	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/tenants"
)

// TestEachProviderReadsTheCeilingByItsOwnName: a call that goes from one
// provider to the next states its ceiling once to each.
func TestEachProviderReadsTheCeilingByItsOwnName(t *testing.T) {
	o, err := jsonbody.ParseObject([]byte(`{"model":"m","max_tokens":null,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	call := &call{form: formAt(wire.Chat), body: o, maxOutput: -1, choices: 3, answers: 3}
	if got := call.capOutput(100); got != 99 {
		t.Errorf("%d are reserved for 3 answers of 33", got)
	}
	for _, c := range []struct{ vendor, want string }{
		{"mistral", "max_tokens"}, {"openai", "max_completion_tokens"}, {"groq", "max_tokens"}, {"azure-openai", "max_completion_tokens"},
	} {
		at := candidate{Route: &tenants.Route{Vendor: catalogue.Provider{Slug: c.vendor}}, model: "m", in: wire.Chat}
		body, _, err := call.forward(at)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := jsonbody.ParseObject(body)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.DeleteFunc(sent.Names(), func(name string) bool { return name == "model" || name == "messages" })
		if !slices.Equal(names, []string{c.want}) || string(sent.Get(c.want)) != "33" {
			t.Errorf("%s is sent %s", c.vendor, body)
		}
	}
}
