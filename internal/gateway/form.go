package gateway

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/tenants"
)

// form is one route: what it takes and gives, and how its calls are counted.
type form struct {
	wire  wire.Form
	path  string // below /v1, and below a provider's base URL
	kind  string // of its events
	media bool   // metered by request; tokens only where the provider states them
	read  func(*call) error
	input []string // members whose text is the prompt
	model string   // that is asked for where a call names none; "": each has to name one
}

// forms are the routes that take a model.
var forms = []*form{
	{wire: wire.Chat, path: "/chat/completions", kind: "chat", read: (*call).readChat, input: []string{"messages", "tools", "functions", "response_format"}},
	{wire: wire.Completions, path: "/completions", kind: "completions", read: (*call).readCompletion, input: []string{"prompt", "suffix"}},
	{wire: wire.Responses, path: "/responses", kind: "responses", read: (*call).readResponse, input: []string{"instructions", "input", "tools", "text"}},
	{wire: wire.Embeddings, path: "/embeddings", kind: "embeddings", read: (*call).readEmbedding, input: []string{"input"}},
	{wire: wire.Messages, path: "/messages", kind: "messages", read: (*call).readMessages, input: []string{"system", "messages", "tools"}},
	{wire: wire.CountTokens, path: "/messages/count_tokens", kind: "count_tokens", read: (*call).readCount, input: []string{"system", "messages", "tools"}, media: true},
	{wire: wire.Images, path: "/images/generations", kind: "images", read: (*call).readImages, input: []string{"prompt"}, media: true},
	{wire: wire.Speech, path: "/audio/speech", kind: "speech", read: (*call).readSpeech, input: []string{"input", "instructions"}, media: true},
	{wire: wire.Transcriptions, path: "/audio/transcriptions", kind: "transcriptions", read: (*call).readTranscription, media: true},
	{wire: wire.Moderations, path: "/moderations", kind: "moderations", read: (*call).readModeration, input: []string{"input"}, media: true, model: "omni-moderation-latest"}, // as OpenAI documents
}

// anthropic tells whether the route's answers and errors have Anthropic's form.
func (f *form) anthropic() bool {
	return f != nil && (f.wire == wire.Messages || f.wire == wire.CountTokens)
}

// formAt is the form of a provider's route.
func formAt(w wire.Form) *form {
	return forms[slices.IndexFunc(forms, func(f *form) bool { return f.wire == w })]
}

// reach is how a provider serves a route: the form in which it is called, or
// not at all. Chat completions and messages are translated where the provider
// speaks the other; tokens are counted here where it does not count them.
func (f *form) reach(r *tenants.Route) (in wire.Form, ok bool) {
	p := r.Endpoint.Provider
	switch {
	case p.Serves(f.path):
		return f.wire, true
	case f.wire == wire.Chat && p.Serves("/messages"):
		return wire.Messages, true
	case f.wire == wire.Messages && p.Serves("/chat/completions"):
		return wire.Chat, true
	case f.wire == wire.CountTokens && p.Serves("/chat/completions"):
		return wire.CountTokens, true
	}
	return "", false
}

func notServed(f *form, model string) error {
	return fault.Newf(fault.Invalid, "unsupported_for_model", "The provider of %s does not serve /v1%s.", model, f.path).
		With(fault.Field{Pointer: "/model", Code: "unsupported_for_model", Message: "This model is not served here."})
}

func quoted(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}
