package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// blocksOf are the blocks that a client of Anthropic's puts together.
func blocksOf(t *testing.T, stream string) (out []string) {
	t.Helper()
	for _, v := range payloads(t, stream) {
		if b, ok := v["content_block"].(map[string]any); ok {
			head, _ := b["id"].(string)
			out = append(out, strings.TrimSpace(b["type"].(string)+" "+head)+": ")
		}
		if d, ok := v["delta"].(map[string]any); ok && v["type"] == "content_block_delta" {
			for _, name := range []string{"text", "thinking", "partial_json"} {
				if s, ok := d[name].(string); ok {
					out[int(v["index"].(float64))] += s
				}
			}
		}
	}
	return out
}

func piece(delta string) string { return `{"choices":[{"index":0,"delta":{` + delta + `}}]}` }

func TestWhatProvidersDoToStreamsReachesAClientOfAnthropics(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"calls without positions": {
			[]string{piece(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{"}}]`), piece(`"tool_calls":[{"function":{"arguments":"}"}}]`)},
			[]string{`tool_use a: {"x":1}`, `tool_use b: {}`},
		},
		"calls that all have one position": {
			[]string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), piece(`"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"y\":2}"}}]`)},
			[]string{`tool_use a: {}`, `tool_use b: {"y":2}`},
		},
		"an id in every piece": {
			[]string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]`)},
			[]string{`tool_use a: {}`},
		},
		"an id that comes late, or never": {
			[]string{piece(`"tool_calls":[{"index":0}]`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), piece(`"tool_calls":[{"index":1,"function":{"name":"g"}}]`)},
			[]string{`tool_use a: {}`, `tool_use call_1: `},
		},
		"arguments as an object": {
			[]string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]`)},
			[]string{`tool_use a: {"x":1}`},
		},
		"words amid a call": {
			[]string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`), piece(`"content":"so"`), piece(`"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]`), piece(`"content":" on"`)},
			[]string{`tool_use a: {"x":1}`, `text: so on`},
		},
		"content in parts, odd members, other answers": {
			[]string{piece(`"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[]}],"refusal":null,"tool_calls":null`), `{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}`, piece(`"content":null,"reasoning":{}`), piece(`"content":"b"`)},
			[]string{`text: ab`},
		},
		"a refusal": {[]string{piece(`"refusal":"No."`)}, []string{"text: No."}},
		"nothing":   {nil, nil},
	} {
		stream := data(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		if c.lines != nil {
			stream = data(c.lines...) + stream
		}
		got := follow(t, Chat, Messages, StreamOptions{}, strings.NewReader(stream))
		if diff := cmp.Diff(c.want, blocksOf(t, got.Out)); diff != "" || !got.Finished {
			t.Errorf("%s: %s\n%s", name, diff, got.Out)
		}
		checkClaude(t, got.Out+got.End)
		want := `"stop_reason":"end_turn"`
		switch {
		case strings.Contains(strings.Join(c.want, ""), "tool_use"):
			want = `"stop_reason":"tool_use"`
		case name == "a refusal":
			want = `"stop_reason":"refusal"`
		}
		if !strings.Contains(got.End, want) {
			t.Errorf("%s: ends %s", name, got.End)
		}
	}
}

func TestACallThatNeverEndsHoldsNoMoreThanALittle(t *testing.T) {
	s := NewStream(Chat, Messages, StreamOptions{})
	feed := func(delta string) int {
		return len(s.Next(nil, Event{Data: []byte(piece(delta)), HasData: true}))
	}
	feed(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`)
	sent, part := 0, strings.Repeat("x", 1<<16)
	for range 64 {
		sent += feed(`"content":"` + part + `"`)
	}
	if most := 64 * len(part); sent < most-heldLimit-len(part) {
		t.Errorf("%d of %d bytes passed", sent, most)
	}
}

// TestWhatACallHoldsIsBounded: arguments of a tool that is never named, and those
// that come after their block had to be closed.
func TestWhatACallHoldsIsBounded(t *testing.T) {
	words := strings.Repeat("x", 200_000)
	for name, begun := range map[string][]string{
		"no name":      nil,
		"closed early": {`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `"content":"` + strings.Repeat("x", heldLimit) + `"`, `"content":"x"`},
	} {
		s := NewStream(Chat, Messages, StreamOptions{})
		feed := func(delta string) { s.Next(nil, Event{Data: []byte(piece(delta)), HasData: true}) }
		for _, delta := range begun {
			feed(delta)
		}
		for range 64 {
			feed(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"` + words + `"}}]`)
		}
		kept := 0
		for _, c := range s.translate.(*messagesWriter).calls {
			kept += cap(c.pending)
		}
		if kept > 2*heldLimit {
			t.Errorf("%s: %d KiB are kept of %d", name, kept>>10, 64*len(words)>>10)
		}
	}
}

func TestAnImageIsALongerLineThanAText(t *testing.T) {
	line := "data: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"" + strings.Repeat("A", 3<<20) + "\"}\n\n"
	if got := follow(t, Images, Images, StreamOptions{}, strings.NewReader(line)); got.Out != line {
		t.Errorf("%d of %d bytes passed", len(got.Out), len(line))
	}
	if got := follow(t, Chat, Chat, StreamOptions{}, strings.NewReader(line)); got.Out != "" {
		t.Errorf("a chat's line of %d bytes passed", len(line))
	}
}
