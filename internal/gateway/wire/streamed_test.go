package wire

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/limits"
)

// TestAWholeAnswerIsSaidAsAStream: read as any other stream, it says what the
// answer said, and states what that stated.
func TestAWholeAnswerIsSaidAsAStream(t *testing.T) {
	took := limits.Tokens{Input: 9, Output: 4}
	for name, c := range map[string]struct {
		form      Form
		body      string
		wants     []string
		stated    limits.Tokens
		wantUsage bool
	}{
		"chat": {
			Chat, `{"id":"c","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"A weir","tool_calls":[{"id":"t","type":"function","function":{"name":"get","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"},{"index":1,"message":{"role":"assistant","content":"B"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`,
			[]string{`"content":"A weir"`, `"index":0,"type":"function"`, `"object":"chat.completion.chunk"`, `"system_fingerprint":"fp"`, `"finish_reason":"tool_calls"`, `"content":"B"`, `"usage":{"prompt_tokens":7`, "data: [DONE]\n\n"},
			limits.Tokens{Input: 7, Output: 3},
			true,
		},
		"chat that states nothing": {
			Chat, `{"id":"c","choices":[{"index":0,"message":{"content":"A weir"},"finish_reason":"stop"}]}`,
			[]string{`"content":"A weir"`, `"finish_reason":"stop"`},
			took, true,
		},
		"completions": {
			Completions, `{"id":"c","object":"text_completion","choices":[{"index":0,"text":"A weir","finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
			[]string{`"finish_reason":"stop"`, `"text":"A weir"`, "data: [DONE]\n\n"},
			limits.Tokens{Input: 7, Output: 3},
			true,
		},
		"messages": {
			Messages, `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"A weir"},{"type":"tool_use","id":"t","name":"get","input":{"a": 1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":3}}`,
			[]string{`"content":[]`, `"thinking":"Hm"`, `"signature":"s"`, `"text":"A weir"`, `"input":{}`, `"partial_json":"{\"a\":1}"`, `"stop_reason":"tool_use"`, "event: message_stop\n"},
			limits.Tokens{Input: 7, Output: 3},
			false,
		},
		"a response": {
			Responses, `{"id":"r","object":"response","status":"completed","output":[{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":"A weir","annotations":[]}]},{"type":"function_call","id":"f","call_id":"t","name":"get","arguments":"{}"}],"usage":{"input_tokens":7,"output_tokens":3}}`,
			[]string{`response.created`, `"delta":"A weir"`, `response.output_text.done`, `"delta":"{}"`, "event: response.completed\n", `"status":"completed"`},
			limits.Tokens{Input: 7, Output: 3},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Streamed(c.form, []byte(c.body), StreamOptions{WantUsage: c.wantUsage, Choices: 2}, took)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Streamed(c.form, []byte(c.body), StreamOptions{WantUsage: c.wantUsage, Choices: 2}, took)
			if !bytes.Equal(out, again) {
				t.Error("it is said in another way each time")
			}
			got := follow(t, c.form, c.form, StreamOptions{WantUsage: true, Choices: 1}, bytes.NewReader(out))
			if got.Failure != "" || !got.Done || got.Why != "" || got.Tokens != c.stated || got.Bytes == 0 || got.Out+got.End != string(out) {
				t.Errorf("%+v", got)
			}
			rest := string(out)
			for _, want := range c.wants {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s is not said in its turn: %s", want, out)
				}
				rest = after
			}
		})
	}
	for _, body := range []string{`{}`, `[]`, `{"choices":{}}`, `{"choices":[{"message":"x"}]}`} {
		if _, err := Streamed(Chat, []byte(body), StreamOptions{}, took); err == nil {
			t.Errorf("%s became a stream", body)
		}
	}
}

// TestAWholeAnswerReachesAStreamsClientOfTheOtherForm.
func TestAWholeAnswerReachesAStreamsClientOfTheOtherForm(t *testing.T) {
	chat := `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"A weir"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
	body, err := ChatToMessagesAnswer([]byte(chat), AnswerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Streamed(Messages, body, StreamOptions{}, limits.Tokens{})
	if err != nil || !strings.Contains(string(out), `{"text":"A weir","type":"text_delta"}`) || !strings.Contains(string(out), `"input_tokens":7`) {
		t.Errorf("%s, %v", out, err)
	}
}
