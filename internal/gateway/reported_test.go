package gateway

import "testing"

func TestAProviderThatServesAnotherModelIsNoticed(t *testing.T) {
	for _, c := range []struct{ asked, reported, want string }{
		{"gpt-4o", "gpt-4o", ""},
		{"gpt-4o", "gpt-4o-2024-08-06", ""},
		{"gpt-4o", "", ""},
		{"openai/gpt-4o", "gpt-4o-2024-08-06", ""},
		{"llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", ""},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", ""},
		{"gemini-2.5-pro", "models/gemini-2.5-pro", ""},
		{"gpt-4o", "gpt-4o-mini", "gpt-4o-mini"},
		{"gpt-4o-mini", "gpt-4o", "gpt-4o"},
		{"gpt-4", "gpt-4-0613", ""},
		{"o3", "o3-mini", "o3-mini"},
		{"gpt-4o", "gpt-3.5-turbo", "gpt-3.5-turbo"},
		{"gpt-4o", "gpt-4", "gpt-4"},
		{"claude-opus-4-1", "claude-haiku-4-5", "claude-haiku-4-5"},
		{"gpt-4o", "sk-proj-abcdef123456", ""},
		{"gpt-4o", "two words", ""},
	} {
		if got := another(c.asked, c.reported); got != c.want {
			t.Errorf("asked %s, reported %q: %q, want %q", c.asked, c.reported, got, c.want)
		}
	}
	for event, want := range map[string]string{
		`{"model":"m","choices":[]}`: "m", `{"type":"message_start","message":{"model":"c"}}`: "c", `{"type":"response.created","response":{"model":"r"}}`: "r",
		`{"type":"ping"}`: "", `{"model":7}`: "", `x`: "",
	} {
		if got := reportedIn([]byte(event)); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}
