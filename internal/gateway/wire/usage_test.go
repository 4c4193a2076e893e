package wire

import (
	"testing"

	"weir/internal/limits"
)

func TestUsageIsReadIntoDisjointClasses(t *testing.T) {
	type T = limits.Tokens
	for _, c := range []struct {
		form Form
		body string
		want T
		why  string
	}{
		{Chat, `{"prompt_tokens":10,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":40}}`, T{Input: 10, Output: 10, Reasoning: 40}, ""},
		{Chat, `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"total_tokens":15}`, T{Input: 10, Output: 5}, ""},
		{Chat, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, T{}, ""},
		// DeepSeek, OpenRouter, xAI, Gemini
		{Chat, `{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, T{Input: 6, CachedInput: 4, Output: 5}, ""},
		{Chat, `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}`, T{Input: 3, CachedInput: 4, CacheWrite: 3, Output: 5}, ""},
		{Chat, `{"prompt_tokens":32,"completion_tokens":9,"total_tokens":321,"completion_tokens_details":{"reasoning_tokens":280}}`, T{Input: 32, Output: 9, Reasoning: 280}, ""},
		{Chat, `{"prompt_tokens":5,"completion_tokens":7,"total_tokens":60}`, T{Input: 5, Output: 7, Reasoning: 48}, ""},
		{Completions, `{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}`, T{Input: 5, Output: 7}, ""},
		{Responses, `{"input_tokens":36,"input_tokens_details":{"cached_tokens":30},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":80},"total_tokens":123}`, T{Input: 6, CachedInput: 30, Output: 7, Reasoning: 80}, ""},
		{Embeddings, `{"prompt_tokens":8,"total_tokens":8}`, T{Input: 8}, ""},
		{Embeddings, `{"total_tokens":8}`, T{Input: 8}, ""},
		{Embeddings, `{}`, T{}, usageAbsent},
		{Images, `{"total_tokens":100,"input_tokens":50,"output_tokens":50,"input_tokens_details":{"text_tokens":10,"image_tokens":40}}`, T{Input: 50, Output: 50}, ""},
		{Transcriptions, `{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":45,"total_tokens":59}`, T{Input: 14, Output: 45}, ""},
		{Transcriptions, `{"type":"duration","seconds":9}`, T{}, usageAbsent},
		{Messages, `{"input_tokens":2095,"output_tokens":503}`, T{Input: 2095, Output: 503}, ""},
		{Messages, `{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":null}`, T{}, ""},
		{Messages, `{"input_tokens":5}`, T{}, usageAbsent},
		{Messages, `{"input_tokens":5,"output_tokens":1,"cache_creation_input_tokens":-1}`, T{}, usageNonsense},
		{CountTokens, `null`, T{}, ""},
		{Chat, `null`, T{}, usageAbsent},
		{Chat, ``, T{}, usageAbsent},
		{Chat, `{}`, T{}, usageAbsent},
		{Chat, `{"prompt_tokens":5}`, T{}, usageAbsent},
		{Chat, `[]`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":-1,"completion_tokens":1}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":1000000000000000000,"completion_tokens":1}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":1,"completion_tokens":1,"total_tokens":9223372036854775807}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":5}}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":1,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":5}}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":"1","completion_tokens":1}`, T{}, usageNonsense},
		{Chat, `{"prompt_tokens":1.5,"completion_tokens":1}`, T{}, usageNonsense},
	} {
		if got, why := Usage(c.form, []byte(c.body)); got != c.want || why != c.why {
			t.Errorf("%s %s: got %+v %q", c.form, c.body, got, why)
		}
	}
}

// C14 of the cases from the field.
func TestCachedTokensAreCountedOnce(t *testing.T) {
	openai, _ := Usage(Chat, []byte(`{"prompt_tokens":17903,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":17817}}`))
	if want := (limits.Tokens{Input: 86, CachedInput: 17_817}); openai != want || openai.Total() != 17_903 {
		t.Errorf("OpenAI: got %+v", openai)
	}
	claude, _ := Usage(Messages, []byte(`{"input_tokens":5,"cache_read_input_tokens":128955,"cache_creation_input_tokens":1253,"output_tokens":0}`))
	if want := (limits.Tokens{Input: 5, CachedInput: 128_955, CacheWrite: 1253}); claude != want || claude.Total() != 130_213 {
		t.Errorf("Anthropic: got %+v", claude)
	}
}

func FuzzUsageIsDisjointAndBelieved(f *testing.F) {
	f.Add("chat", []byte(`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":321,"completion_tokens_details":{"reasoning_tokens":280}}`))
	f.Add("messages", []byte(`{"input_tokens":5,"output_tokens":1}`))
	f.Fuzz(func(t *testing.T, form string, b []byte) {
		got, why := Usage(Form(form), b)
		if len((limits.Cost{Tokens: got}).Check()) > 0 || why != "" && got != (limits.Tokens{}) {
			t.Fatalf("%s: %+v %q", b, got, why)
		}
	})
}
