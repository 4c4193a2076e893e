package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"weir/internal/fault"
	"weir/internal/jsonbody"
)

// fixture is one translation, or its fault. Fixtures are written by hand from
// the public references of both APIs.
type fixture struct {
	Name    string
	Options jsontext.Value
	In, Out json.RawMessage
	Fault   string
}

func fixtures(t testing.TB, name string) (list []fixture) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

// same compares JSON by its meaning.
func same(t *testing.T, name string, want, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v in %s", name, err, got)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func parse(t interface{ Fatalf(string, ...any) }, body []byte) *jsonbody.Object {
	o, err := jsonbody.ParseObject(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return o
}

func requests[O any](t *testing.T, file string, translate func(*jsonbody.Object, O) ([]byte, error)) {
	t.Helper()
	for _, f := range fixtures(t, file) {
		var o O
		if f.Options != nil {
			if err := json.Unmarshal(f.Options, &o); err != nil {
				t.Fatal(err)
			}
		}
		got, err := translate(parse(t, f.In), o)
		if f.Fault == "" {
			if err != nil {
				t.Errorf("%s: %v", f.Name, err)
				continue
			}
			same(t, f.Name, f.Out, got)
			continue
		}
		if e := fault.Of(err); err == nil || e.Kind != fault.Invalid || len(e.Fields) != 1 || e.Fields[0].Pointer+" "+e.Fields[0].Code != f.Fault {
			t.Errorf("%s: got %s, %v", f.Name, got, err)
		}
	}
}

func TestAChatIsSaidInAnthropicsForm(t *testing.T) {
	requests(t, "chat_to_messages.json", ChatToMessages)
}

func TestMessagesAreSaidInOpenAIsForm(t *testing.T) {
	requests(t, "messages_to_chat.json", MessagesToChat)
}

func answers(t *testing.T, file string, translate func([]byte, AnswerOptions) ([]byte, error)) {
	t.Helper()
	for _, f := range fixtures(t, file) {
		var o AnswerOptions
		if f.Options != nil {
			if err := json.Unmarshal(f.Options, &o); err != nil {
				t.Fatal(err)
			}
		}
		got, err := translate(f.In, o)
		switch {
		case f.Fault == "" && err != nil:
			t.Errorf("%s: %v", f.Name, err)
		case f.Fault == "":
			same(t, f.Name, f.Out, got)
		case err == nil || !fault.Is(err, fault.Upstream) || fault.Of(err).Code != f.Fault:
			t.Errorf("%s: got %s, %v", f.Name, got, err)
		}
	}
}

func TestAnAnswerOfAnthropicsIsSaidInOpenAIsForm(t *testing.T) {
	answers(t, "answers_to_chat.json", MessagesToChatAnswer)
}

func TestAnAnswerOfOpenAIsIsSaidInAnthropicsForm(t *testing.T) {
	answers(t, "answers_to_messages.json", ChatToMessagesAnswer)
}

func TestTheReasonOfAnEndIsSaidBothWays(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls", "refusal": "content_filter", "": "stop",
	} {
		if got := chatReason(stop); got != want {
			t.Errorf("%s: got %s", stop, got)
		}
	}
	for finish, want := range map[string]string{
		"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use", "content_filter": "refusal", "": "end_turn",
	} {
		if got := claudeReason(finish, false); got != want {
			t.Errorf("%s: got %s", finish, got)
		}
	}
	if got := claudeReason("stop", true); got != "tool_use" {
		t.Errorf("stop with tools: got %s", got)
	}
}

func TestTheGenerationStandsInAModelsName(t *testing.T) {
	for model, want := range map[string]generation{
		"claude-3-haiku-20240307": {3, 0}, "claude-3-5-sonnet-latest": {3, 5}, "claude-3-7-sonnet-20250219": {3, 7}, "claude-opus-4-20250514": {4, 0},
		"claude-sonnet-4-5": {4, 5}, "claude-haiku-4-5-20251001": {4, 5}, "anthropic/claude-opus-4.8": {4, 8}, "us.anthropic.claude-opus-4-6-v1:0": {4, 6},
		"claude-opus-5": {5, 0}, "claude-opus-5-5": {5, 5}, "claude-2.1": {2, 1}, "claude-sonnet-4@20250514": {4, 0}, "claude-next": newest, "kimi-k2": other, "": other,
	} {
		if got := generationOf(model); got != want {
			t.Errorf("%s: got %v", model, got)
		}
	}
}
