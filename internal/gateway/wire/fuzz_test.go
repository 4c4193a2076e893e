package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fault"
	"weir/internal/jsonbody"
)

// ways are every form passed on as it is, and every translation.
var ways = [][2]Form{
	{Chat, Chat},
	{Completions, Completions},
	{Responses, Responses},
	{Embeddings, Embeddings},
	{Messages, Messages},
	{CountTokens, CountTokens},
	{Images, Images},
	{Speech, Speech},
	{Transcriptions, Transcriptions},
	{Moderations, Moderations},
	{Messages, Chat},
	{Chat, Messages},
}

var responsesStream = typed(
	`response.created "sequence_number":0,"response":{"id":"resp_1","status":"in_progress","usage":null}`,
	`response.output_item.added "sequence_number":1,"item":{"type":"message"}`,
	`response.output_text.delta "sequence_number":2,"delta":"Hé\u00e9"`,
	`response.function_call_arguments.delta "sequence_number":3,"delta":"{\"a\":"`,
	`response.completed "sequence_number":4,"response":{"id":"resp_1","status":"completed","usage":{"input_tokens":9,"output_tokens":2}}`,
)

func seeds(f *testing.F) {
	for _, s := range []string{
		story, anthropicStream, openAIStream, responsesStream,
		anthropicStream[:len(anthropicStream)/2], openAIStream[:len(openAIStream)/2],
		strings.ReplaceAll(openAIStream, "\n", "\r\n"), strings.ReplaceAll(anthropicStream, "\n", "\r"),
		typed(`message_start "message":{}`, `error "error":{"type":"overloaded_error","message":"Overloaded"}`),
		data(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"error":{"code":502},"choices":[{"index":0,"finish_reason":"error"}]}`, "[DONE]"),
		data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}},{"id":"b","function":{"name":"g"}}]}}]}`),
	} {
		f.Add([]byte(s), uint64(1))
	}
}

func FuzzAnySplitOfAStreamGivesTheSame(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		for _, way := range ways {
			o := StreamOptions{WantUsage: seed%2 == 0}
			want := follow(t, way[0], way[1], o, bytes.NewReader(stream))
			for range 3 {
				if diff := cmp.Diff(want, follow(t, way[0], way[1], o, cuts(stream, random))); diff != "" {
					t.Fatalf("%v: %s", way, diff)
				}
			}
			if want.Pieces > want.Bytes || want.Done && want.Failure != "" {
				t.Fatalf("%v: %+v", way, want)
			}
		}
	})
}

func FuzzWhatIsTranslatedIsAStreamOfItsForm(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		o := StreamOptions{ID: "x", Model: "m", WantUsage: seed%2 == 0}
		claude := follow(t, Chat, Messages, o, bytes.NewReader(stream))
		checkClaude(t, claude.Out+claude.End)
		chat := follow(t, Messages, Chat, o, bytes.NewReader(stream))
		checkChat(t, chat.Out+chat.End)
	})
}

// checkClaude holds a stream to the order of Anthropic's events: one message,
// blocks one after the other, the reason of the end, the end.
func checkClaude(t *testing.T, stream string) {
	t.Helper()
	var order []string
	block, open := 0, false
	for _, v := range payloads(t, stream) {
		kind, _ := v["type"].(string)
		index, _ := v["index"].(float64)
		switch kind {
		case "content_block_start":
			if open || int(index) != block {
				t.Fatalf("block %v begins where %d should: %s", index, block, stream)
			}
			open = true
		case "content_block_delta", "content_block_stop":
			if !open || int(index) != block {
				t.Fatalf("%s of block %v, not %d: %s", kind, index, block, stream)
			}
			if kind == "content_block_stop" {
				open = false
				block++
			}
		default:
			order = append(order, kind)
		}
	}
	if diff := cmp.Diff([]string{"message_start", "ping", "message_delta", "message_stop"}, order); diff != "" || open {
		t.Fatalf("%s in %s", diff, stream)
	}
}

// checkChat holds a stream to what OpenAI's says: the role first, each call by
// its position, one reason at the end.
func checkChat(t *testing.T, stream string) {
	t.Helper()
	var calls, finished int
	for i, v := range payloads(t, stream) {
		choices := v["choices"].([]any)
		if len(choices) == 0 {
			if v["usage"] == nil || finished != 1 {
				t.Fatalf("an empty chunk: %s", stream)
			}
			continue
		}
		c := choices[0].(map[string]any)
		delta := c["delta"].(map[string]any)
		if (delta["role"] == "assistant") != (i == 0) {
			t.Fatalf("chunk %d: %s", i, stream)
		}
		list, _ := delta["tool_calls"].([]any)
		for _, call := range list {
			call := call.(map[string]any)
			position := int(call["index"].(float64))
			if call["type"] == "function" {
				if position != calls {
					t.Fatalf("call %d begins where %d should: %s", position, calls, stream)
				}
				calls++
			} else if position >= calls {
				t.Fatalf("a piece of call %d, which has not begun: %s", position, stream)
			}
		}
		if c["finish_reason"] != nil {
			finished++
		}
	}
	if finished != 1 || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Fatalf("ends %d times: %s", finished, stream)
	}
}

func FuzzAnAnswerIsReadOrRefused(f *testing.F) {
	for _, file := range []string{"answers_to_chat.json", "answers_to_messages.json"} {
		for _, c := range fixtures(f, file) {
			f.Add([]byte(c.In))
		}
	}
	f.Add([]byte(`[{"error":{"code":429}}]`))
	f.Add([]byte(`{"choices":[{"finish_reason":"error"}],"error":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, way := range ways {
			a := ReadAnswer(way[0], body)
			for _, v := range [][]byte{a.Usage, a.Error, a.Output} {
				if v != nil && (!a.Valid || !present(v)) {
					t.Fatalf("%s: %+v", way[0], a)
				}
			}
		}
		for name, translate := range map[string]func([]byte, AnswerOptions) ([]byte, error){"chat": MessagesToChatAnswer, "messages": ChatToMessagesAnswer} {
			got, err := translate(body, AnswerOptions{})
			if err == nil && !json.Valid(got) || err != nil && !fault.Is(err, fault.Upstream) {
				t.Fatalf("%s: %s, %v", name, got, err)
			}
		}
	})
}

func FuzzARequestIsTranslatedOrRefused(f *testing.F) {
	for _, file := range []string{"chat_to_messages.json", "messages_to_chat.json"} {
		for _, c := range fixtures(f, file) {
			f.Add([]byte(c.In), true)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, option bool) {
		toMessages := func(o *jsonbody.Object) ([]byte, error) { return ChatToMessages(o, ToMessages{}) }
		toChat := func(o *jsonbody.Object) ([]byte, error) {
			return MessagesToChat(o, ToChat{option, option, option, option, option, option})
		}
		for name, translate := range map[string]func(*jsonbody.Object) ([]byte, error){"messages": toMessages, "chat": toChat} {
			o, err := jsonbody.ParseObject(body)
			if err != nil {
				return
			}
			got, err := translate(o)
			if err != nil {
				if e := fault.Of(err); e.Kind != fault.Invalid || len(e.Fields) != 1 || e.Fields[0].Pointer == "" {
					t.Fatalf("%s: %v", name, err)
				}
				continue
			}
			if _, err := jsonbody.ParseObject(got); err != nil {
				t.Fatalf("%s: %s: %v", name, got, err)
			}
		}
	})
}

// A fault is written for people: it names the member and what to do.
func TestARefusalNamesTheMember(t *testing.T) {
	_, err := ChatToMessages(parse(t, []byte(`{"n":2,"messages":[]}`)), ToMessages{})
	if e := fault.Of(err); !strings.Contains(e.Message, "cannot say n.") || !strings.Contains(fmt.Sprint(e.Fields), "/n") {
		t.Errorf("got %v", err)
	}
}
