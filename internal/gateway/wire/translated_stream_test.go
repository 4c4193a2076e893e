package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/limits"
)

// anthropicStream is a stream with everything that Anthropic writes.
var anthropicStream = typed(
	`message_start "message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":10,"output_tokens":1}}`,
	"ping",
	`content_block_start "index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`,
	`content_block_delta "index":0,"delta":{"type":"thinking_delta","thinking":"h"}`,
	`content_block_delta "index":0,"delta":{"type":"thinking_delta","thinking":"m"}`,
	`content_block_delta "index":0,"delta":{"type":"signature_delta","signature":"c2ln"}`,
	`content_block_stop "index":0`,
	`content_block_start "index":1,"content_block":{"type":"redacted_thinking","data":"x"}`,
	`content_block_stop "index":1`,
	`content_block_start "index":2,"content_block":{"type":"text","text":""}`,
	`content_block_delta "index":2,"delta":{"type":"text_delta","text":"Hé"}`,
	`content_block_delta "index":2,"delta":{"type":"text_delta","text":"llo"}`,
	`content_block_delta "index":2,"delta":{"type":"citations_delta","citation":{}}`,
	`content_block_stop "index":2`,
	`content_block_start "index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`,
	`content_block_delta "index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}`,
	`content_block_stop "index":3`,
	`content_block_start "index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`,
	`content_block_delta "index":4,"delta":{"type":"input_json_delta","partial_json":""}`,
	`content_block_delta "index":4,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}`,
	`content_block_delta "index":4,"delta":{"type":"input_json_delta","partial_json":" 1}"}`,
	`content_block_stop "index":4`,
	`content_block_start "index":5,"content_block":{"type":"tool_use","id":"toolu_2","name":"g","input":{"b":2}}`,
	`content_block_stop "index":5`,
	`content_block_start "index":6,"content_block":{"type":"tool_use","id":"toolu_3","name":"h","input":{}}`,
	`content_block_stop "index":6`,
	`message_delta "delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}`,
	`message_stop`,
)

// openAIStream is a stream with everything that OpenAI and those like it write.
var openAIStream = data(
	`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"reasoning_content":"h"}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"reasoning":"m","reasoning_content":null}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"content":"Hé"}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"content":"llo"}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"}\"}"}}]}}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	`{"id":"chatcmpl-1","model":"gpt","choices":[],"usage":{"prompt_tokens":115,"completion_tokens":42,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":2}}}`,
	`[DONE]`,
)

// payloads are the data of a stream's events, decoded.
func payloads(t *testing.T, stream string) (out []map[string]any) {
	t.Helper()
	for _, e := range events(t, strings.NewReader(stream)) {
		if e.Data == "" || e.Data == "[DONE]" {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(e.Data), &v); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if e.Name != "" && e.Name != v["type"] {
			t.Fatalf("event %s says that it is %v", e.Name, v["type"])
		}
		out = append(out, v)
	}
	return out
}

// deltas are what a client of OpenAI's reads, one line each.
func deltas(t *testing.T, stream string) (out []string) {
	t.Helper()
	for _, v := range payloads(t, stream) {
		if v["object"] != "chat.completion.chunk" || v["id"] == "" || v["model"] == "" {
			t.Fatalf("%v is no chunk", v)
		}
		choices := v["choices"].([]any)
		if len(choices) == 0 {
			out = append(out, "usage "+compact(t, v["usage"]))
			continue
		}
		c := choices[0].(map[string]any)
		line := compact(t, c["delta"])
		if finish, _ := c["finish_reason"].(string); finish != "" {
			line += " " + finish
		}
		out = append(out, line)
	}
	return out
}

func compact(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAStreamOfAnthropicsBecomesChunks(t *testing.T) {
	got := follow(t, Messages, Chat, StreamOptions{ID: "chatcmpl-9", Model: "smart", Created: 7, WantUsage: true}, strings.NewReader(anthropicStream))
	want := []string{
		`{"content":"","role":"assistant"}`,
		`{"reasoning_content":"h"}`, `{"reasoning_content":"m"}`,
		`{"thinking_blocks":[{"index":0,"signature":"c2ln","thinking":"hm","type":"thinking"}]}`,
		`{"thinking_blocks":[{"data":"x","index":1,"type":"redacted_thinking"}]}`,
		`{"content":"Hé"}`, `{"content":"llo"}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"toolu_1","index":0,"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{\"a\":"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":" 1}"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"g"},"id":"toolu_2","index":1,"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{\"b\":2}"},"index":1}]}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"h"},"id":"toolu_3","index":2,"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{}"},"index":2}]}`,
		`{} tool_calls`,
	}
	if diff := cmp.Diff(want, deltas(t, got.Out)); diff != "" {
		t.Error(diff)
	}
	usage := `usage {"completion_tokens":42,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":115,"prompt_tokens_details":{"cache_write_tokens":10,"cached_tokens":100},"total_tokens":157}`
	if diff := cmp.Diff([]string{usage}, deltas(t, got.End)); diff != "" || !strings.HasSuffix(got.End, "\n\ndata: [DONE]\n\n") {
		t.Error(diff, got.End)
	}
	if !strings.Contains(got.Out, `"id":"chatcmpl-9","object":"chat.completion.chunk","created":7,"model":"smart"`) || !strings.Contains(got.Out, "\n: ping\n\n") {
		t.Error(got.Out)
	}
	if want := (limits.Tokens{Input: 5, CachedInput: 100, CacheWrite: 10, Output: 42}); got.Tokens != want || !got.Done || !got.Finished {
		t.Errorf("%+v", got)
	}
	if quiet := follow(t, Messages, Chat, StreamOptions{}, strings.NewReader(anthropicStream)); strings.Contains(quiet.Out+quiet.End, "usage") || quiet.End != data("[DONE]") {
		t.Errorf("a usage frame that nobody asked for: %s", quiet.End)
	}
}

func TestAStreamOfOpenAIsBecomesBlocksOneAfterTheOther(t *testing.T) {
	got := follow(t, Chat, Messages, StreamOptions{}, strings.NewReader(openAIStream))
	start := func(i int, block string) string {
		return fmt.Sprintf(`content_block_start "index":%d,"content_block":%s`, i, block)
	}
	piece := func(i int, delta string) string {
		return fmt.Sprintf(`content_block_delta "index":%d,"delta":%s`, i, delta)
	}
	stop := func(i int) string { return fmt.Sprintf(`content_block_stop "index":%d`, i) }
	want := typed(
		`message_start "message":{"id":"chatcmpl-1","type":"message","role":"assistant","model":"gpt","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		"ping",
		start(0, `{"type":"thinking","thinking":"","signature":""}`),
		piece(0, `{"type":"thinking_delta","thinking":"h"}`), piece(0, `{"type":"thinking_delta","thinking":"m"}`), stop(0),
		start(1, `{"type":"text","text":""}`),
		piece(1, `{"type":"text_delta","text":"Hé"}`), piece(1, `{"type":"text_delta","text":"llo"}`), stop(1),
		start(2, `{"type":"tool_use","id":"call_1","name":"f","input":{}}`),
		piece(2, `{"type":"input_json_delta","partial_json":"{\"a\":"}`), piece(2, `{"type":"input_json_delta","partial_json":" \"}\"}"}`), stop(2),
		start(3, `{"type":"tool_use","id":"call_2","name":"g","input":{}}`),
		piece(3, `{"type":"input_json_delta","partial_json":"{}"}`), stop(3),
	)
	if diff := cmp.Diff(want, got.Out); diff != "" {
		t.Error(diff)
	}
	end := typed(`message_delta "delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":100,"output_tokens":42}`, "message_stop")
	if diff := cmp.Diff(end, got.End); diff != "" {
		t.Error(diff)
	}
	if want := (limits.Tokens{Input: 15, CachedInput: 100, Output: 40, Reasoning: 2}); got.Tokens != want || !got.Done || !got.Finished {
		t.Errorf("%+v", got)
	}
}
