package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// said is one thing that is said in a conversation or an answer. Words of one
// side in a row are one.
type said struct{ Who, What string }

func join(list []said, who, what string) []said {
	if last := len(list) - 1; last >= 0 && list[last].Who == who && !strings.Contains(who, " ") {
		list[last].What += what
		return list
	}
	return append(list, said{who, what})
}

// texts hold more than white space, which Anthropic refuses.
func texts() *rapid.Generator[string] {
	return rapid.StringN(1, 12, -1).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
}

func arguments() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		b, _ := json.Marshal(rapid.MapOf(rapid.StringN(0, 4, -1), rapid.StringN(0, 8, -1)).Draw(t, "arguments"))
		return string(b)
	})
}

// conversation draws messages of a chat that providers take: each call of a
// tool has its result.
func conversation(t *rapid.T) (messages []map[string]any, want []said) {
	say := func(role string, m map[string]any) {
		m["role"] = role
		messages = append(messages, m)
	}
	if rapid.Bool().Draw(t, "system") {
		text := texts().Draw(t, "text")
		say("system", map[string]any{"content": text})
		want = join(want, "system", text)
	}
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		var parts []map[string]any
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "image") {
				url := rapid.SampledFrom([]string{"https://example.com/a.png", "data:image/png;base64,AAAA"}).Draw(t, "url")
				parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}})
				want = join(want, "user image", url)
				continue
			}
			text := texts().Draw(t, "text")
			parts = append(parts, map[string]any{"type": "text", "text": text})
			want = join(want, "user", text)
		}
		say("user", map[string]any{"content": parts})
		answer := map[string]any{"content": nil}
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		if calls == 0 || rapid.Bool().Draw(t, "words") {
			text := texts().Draw(t, "text")
			answer["content"] = text
			want = join(want, "assistant", text)
		}
		var list, results []map[string]any
		for i := range calls {
			id, args := fmt.Sprintf("call_%d-%d", turn, i), arguments().Draw(t, "arguments")
			list = append(list, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "f" + strconv.Itoa(i), "arguments": args}})
			want = join(want, "call "+id, "f"+strconv.Itoa(i)+" "+args)
			results = append(results, map[string]any{"tool_call_id": id, "content": texts().Draw(t, "result")})
		}
		if calls > 0 {
			answer["tool_calls"] = list
		}
		say("assistant", answer)
		for _, r := range results {
			say("tool", r)
			want = join(want, "result "+r["tool_call_id"].(string), r["content"].(string))
		}
	}
	return messages, want
}

// normal writes a JSON text as the standard library does.
func normal(t *rapid.T, s string) string {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return js(v)
}

// heardOf is what a chat request says.
func heardOf(t *rapid.T, request []byte) (out []said) {
	var r struct {
		Messages []struct {
			Role      string
			Content   json.RawMessage
			ToolCalls []chatToolCall `json:"tool_calls"`
			ID        string         `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Messages {
		who := m.Role
		if m.Role == "tool" {
			who = "result " + m.ID
		}
		var text string
		var parts []chatPart
		if json.Unmarshal(m.Content, &text) == nil && text != "" {
			out = join(out, who, text)
		} else if json.Unmarshal(m.Content, &parts) == nil {
			for _, p := range parts {
				if p.ImageURL != nil {
					out = join(out, who+" image", p.ImageURL.URL)
				} else {
					out = join(out, who, p.Text)
				}
			}
		}
		for _, c := range m.ToolCalls {
			out = join(out, "call "+c.ID, c.Function.Name+" "+normal(t, string(c.Function.Arguments)))
		}
	}
	return out
}

func TestAConversationSurvivesTheWayThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages, want := conversation(t)
		body, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		there, err := ChatToMessages(parse(t, body), ToMessages{})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		alternates(t, there)
		back, err := MessagesToChat(parse(t, there), ToChat{})
		if err != nil {
			t.Fatalf("%s: %v", there, err)
		}
		if diff := cmp.Diff(want, heardOf(t, back)); diff != "" {
			t.Fatalf("%s\nthere %s\nback %s", diff, there, back)
		}
	})
}

// alternates holds a messages request to what Anthropic demands: turns
// alternate, and results stand first in the turn after their calls.
func alternates(t *rapid.T, request []byte) {
	var r struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, ID string
				For      string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatal(err)
	}
	var open []string
	for i, m := range r.Messages {
		if m.Role != []string{"user", "assistant"}[i%2] {
			t.Fatalf("turn %d is the %s's: %s", i, m.Role, request)
		}
		var results []string
		for j, b := range m.Content {
			if b.Type == "tool_result" {
				if results = append(results, b.For); len(results) != j+1 {
					t.Fatalf("a result after other words: %s", request)
				}
			}
		}
		if !slices.Equal(open, results) {
			t.Fatalf("calls %v, results %v: %s", open, results, request)
		}
		open = nil
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
}

// answered draws what an answer says: a thought, then words and calls.
func answered(t *rapid.T) (list []said) {
	if rapid.Bool().Draw(t, "thought") {
		list = append(list, said{"thinking", texts().Draw(t, "thought")})
	}
	if rapid.Bool().Draw(t, "words") {
		list = append(list, said{"text", texts().Draw(t, "text")})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		list = append(list, said{"call " + strconv.Itoa(i), arguments().Draw(t, "arguments")})
	}
	return list
}

// pieces cuts a text between its runes.
func pieces(t *rapid.T, s string) (out []string) {
	for r := []rune(s); len(r) > 0; {
		n := rapid.IntRange(1, len(r)).Draw(t, "piece")
		out, r = append(out, string(r[:n])), r[n:]
	}
	return out
}

func js(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestWhatAnthropicStreamsReachesAClientOfOpenAIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := answered(t)
		lines := []string{`message_start "message":{"id":"msg_1","model":"claude","usage":{"input_tokens":1,"output_tokens":1}}`}
		for i, s := range want {
			block, piece := map[string]string{"thinking": `{"type":"thinking","thinking":""}`, "text": `{"type":"text","text":""}`}[s.Who], map[string]string{"thinking": "thinking", "text": "text"}[s.Who]
			if block == "" {
				block, piece = `{"type":"tool_use","id":"toolu_`+strconv.Itoa(i)+`","name":"f","input":{}}`, "partial_json"
			}
			lines = append(lines, fmt.Sprintf(`content_block_start "index":%d,"content_block":%s`, i, block))
			kind := map[string]string{"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}[piece]
			for _, p := range pieces(t, s.What) {
				lines = append(lines, fmt.Sprintf(`content_block_delta "index":%d,"delta":{"type":"%s","%s":%s}`, i, kind, piece, js(p)))
			}
			lines = append(lines, fmt.Sprintf(`content_block_stop "index":%d`, i))
		}
		lines = append(lines, `message_delta "delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}`, "message_stop")
		got := follow(t, Messages, Chat, StreamOptions{}, strings.NewReader(typed(lines...)))
		if diff := cmp.Diff(want, gathered(t, got.Out)); diff != "" {
			t.Fatalf("%s\n%s", diff, got.Out)
		}
	})
}

// gathered puts an answer together as a client of OpenAI's does.
func gathered(t *rapid.T, stream string) (out []said) {
	r := NewReader(Chat, strings.NewReader(stream))
	for {
		e, err := r.Next()
		if err != nil {
			return out
		}
		var v chatStreamEvent
		if !e.HasData {
			continue
		}
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatal(err)
		}
		for _, c := range v.Choices {
			if c.Delta.Reasoning != "" {
				out = add(out, "thinking", string(c.Delta.Reasoning))
			}
			if s := text(c.Delta.Content); s != "" {
				out = add(out, "text", s)
			}
			for _, call := range c.Delta.ToolCalls {
				out = add(out, "call "+strconv.Itoa(*call.Index), string(call.Function.Arguments))
			}
		}
	}
}

// add lengthens what was said by this name, or begins it.
func add(list []said, who, what string) []said {
	for i := range list {
		if list[i].Who == who {
			list[i].What += what
			return list
		}
	}
	return append(list, said{who, what})
}

func TestWhatOpenAIStreamsReachesAClientOfAnthropics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := answered(t)
		var lines []string
		delta := func(d string) { lines = append(lines, `{"choices":[{"index":0,"delta":{`+d+`}}]}`) }
		var calls []said
		for _, s := range want {
			if strings.HasPrefix(s.Who, "call ") {
				calls = append(calls, s)
				continue
			}
			for _, p := range pieces(t, s.What) {
				delta(map[string]string{"thinking": `"reasoning_content":`, "text": `"content":`}[s.Who] + js(p))
			}
		}
		interleave(t, calls, delta)
		lines = append(lines, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
		got := follow(t, Chat, Messages, StreamOptions{}, strings.NewReader(data(lines...)))
		if diff := cmp.Diff(want, gatheredBlocks(t, got.Out)); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, data(lines...), got.Out)
		}
	})
}

// interleave says calls whose pieces come in any order, as long as each call
// begins after the one before it.
func interleave(t *rapid.T, calls []said, delta func(string)) {
	var open [][]string
	begun := 0
	for begun < len(calls) || slices.ContainsFunc(open, func(p []string) bool { return len(p) > 0 }) {
		i := rapid.IntRange(0, begun).Draw(t, "call")
		switch {
		case i == begun && begun < len(calls):
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":"f","arguments":""}}]`, i, i))
			open = append(open, pieces(t, calls[i].What))
			begun++
		case i < begun && len(open[i]) > 0:
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, js(open[i][0])))
			open[i] = open[i][1:]
		}
	}
}

// gatheredBlocks puts an answer together as a client of Anthropic's does.
func gatheredBlocks(t *rapid.T, stream string) (out []said) {
	r, calls := NewReader(Chat, strings.NewReader(stream)), 0
	for {
		e, err := r.Next()
		if err != nil {
			return out
		}
		var v claudeStreamEvent
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatal(err)
		}
		switch v.Type {
		case "content_block_start":
			who := v.Block.Type
			if who == "tool_use" {
				who = "call " + strconv.Itoa(calls)
				calls++
			}
			out = append(out, said{who, ""})
		case "content_block_delta":
			out[v.Index].What += v.Delta.Text + v.Delta.Thinking + v.Delta.Partial
		}
	}
}
