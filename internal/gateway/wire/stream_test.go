package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/internal/limits"
)

// followed is all that a stream gave.
type followed struct {
	Out, End, Failure string
	Tokens            limits.Tokens
	Why               string
	Pieces, Bytes     int64
	Done, Finished    bool
}

func follow(t interface{ Fatal(...any) }, from, to Form, o StreamOptions, r io.Reader) (f followed) {
	s, events := NewStream(from, to, o), NewReader(from, r)
	var out []byte
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrLineTooLong) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = s.Next(out, e)
	}
	failure, _ := s.Failed()
	f = followed{Out: string(out), Failure: string(failure), Done: s.Done(), Finished: s.Finished()}
	f.Tokens, f.Why = s.Usage()
	f.Pieces, f.Bytes = s.Streamed()
	f.End = string(s.End(nil, f.Tokens))
	return f
}

func data(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }

func typed(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		name, rest, _ := strings.Cut(e, " ")
		b.WriteString("event: " + name + "\ndata: {\"type\":\"" + name + "\"")
		if rest != "" {
			b.WriteString("," + rest)
		}
		b.WriteString("}\n\n")
	}
	return b.String()
}

// G13 of the cases from the field.
func TestTheLastFullStatementOfAStreamCounts(t *testing.T) {
	for name, c := range map[string]struct {
		start, delta string
		want         limits.Tokens
	}{
		"the split comes last":       {`"input_tokens":8834,"output_tokens":1`, `"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":426`, limits.Tokens{Input: 18, CachedInput: 8831, Output: 426}},
		"the output comes last":      {`"input_tokens":18,"cache_read_input_tokens":8831,"cache_creation_input_tokens":7,"output_tokens":1`, `"output_tokens":426`, limits.Tokens{Input: 18, CachedInput: 8831, CacheWrite: 7, Output: 426}},
		"the same input once more":   {`"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":1`, `"input_tokens":18,"output_tokens":426`, limits.Tokens{Input: 18, CachedInput: 8831, Output: 426}},
		"everything once more":       {`"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":1`, `"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":426`, limits.Tokens{Input: 18, CachedInput: 8831, Output: 426}},
		"nothing at first":           {`"input_tokens":0,"output_tokens":0`, `"input_tokens":8849,"output_tokens":426`, limits.Tokens{Input: 8849, Output: 426}},
		"a new sum without a split":  {`"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":1`, `"input_tokens":8849,"output_tokens":426`, limits.Tokens{Input: 8849, Output: 426}},
		"null says nothing":          {`"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":1`, `"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":426`, limits.Tokens{Input: 18, CachedInput: 8831, Output: 426}},
		"tools of the server add up": {`"input_tokens":2679,"output_tokens":3`, `"input_tokens":10682,"cache_read_input_tokens":0,"output_tokens":510`, limits.Tokens{Input: 10682, Output: 510}},
	} {
		stream := typed(`message_start "message":{"usage":{`+c.start+`}}`, `message_delta "delta":{"stop_reason":"end_turn"},"usage":{`+c.delta+`}`, "message_stop")
		got := follow(t, Messages, Messages, StreamOptions{}, strings.NewReader(stream))
		if got.Tokens != c.want || got.Why != "" {
			t.Errorf("%s: got %+v %q", name, got.Tokens, got.Why)
		}
	}
	running := data(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7}}`, `{"choices":[],"usage":null}`, "[DONE]")
	if got := follow(t, Chat, Chat, StreamOptions{}, strings.NewReader(running)); got.Tokens != (limits.Tokens{Input: 10, Output: 7}) {
		t.Errorf("a running sum: got %+v", got.Tokens)
	}
}

// G14 of the cases from the field.
func TestAStatedZeroIsAZeroAndNothingIsAbsent(t *testing.T) {
	hello := `{"choices":[{"index":0,"delta":{"content":"hello"}}]}`
	for name, c := range map[string]struct {
		form        Form
		stream, why string
	}{
		"zeros":           {Chat, data(hello, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`), ""},
		"null":            {Chat, data(hello, `{"choices":[],"usage":null}`), usageAbsent},
		"nothing":         {Chat, data(hello), usageAbsent},
		"Anthropic zeros": {Messages, typed(`message_start "message":{"usage":{"input_tokens":0,"output_tokens":0}}`), ""},
		"Anthropic none":  {Messages, typed(`message_start "message":{}`), usageAbsent},
	} {
		got := follow(t, c.form, c.form, StreamOptions{}, strings.NewReader(c.stream))
		if got.Why != c.why || got.Tokens != (limits.Tokens{}) {
			t.Errorf("%s: got %+v %q", name, got.Tokens, got.Why)
		}
	}
}

// C15 of the cases from the field.
func TestAStreamStatesWhatTheWholeAnswerDoes(t *testing.T) {
	for form, c := range map[Form]struct{ whole, stream string }{
		Chat: {
			`{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`,
			data(`{"choices":[{"index":0,"delta":{"content":"hel"}}]}`, `{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`, "[DONE]"),
		},
		Messages: {
			`{"content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":2}}`,
			typed(`message_start "message":{"usage":{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":1}}`, `content_block_delta "delta":{"type":"text_delta","text":"hel"}`, `content_block_delta "delta":{"type":"text_delta","text":"lo"}`, `message_delta "delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}`, "message_stop"),
		},
		Responses: {
			`{"output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2}}`,
			typed(`response.created "response":{"usage":null}`, `response.output_text.delta "delta":"hel"`, `response.output_text.delta "delta":"lo"`, `response.completed "response":{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2}}`),
		},
	} {
		want, why := Usage(form, ReadAnswer(form, []byte(c.whole)).Usage)
		got := follow(t, form, form, StreamOptions{}, strings.NewReader(c.stream))
		if why != "" || got.Why != "" || got.Tokens != want || want.Total() != 11 || !got.Done || !got.Finished || got.Pieces != 2 || got.Bytes != 5 {
			t.Errorf("%s: whole %+v %q, streamed %+v", form, want, why, got)
		}
		begun, _, _ := strings.Cut(c.stream, "lo\"")
		cut := follow(t, form, form, StreamOptions{}, strings.NewReader(begun))
		if cut.Done || cut.Finished || cut.Pieces != 1 || cut.Bytes != 3 || cut.Why == "" && form != Messages {
			t.Errorf("%s, cut: %+v", form, cut)
		}
	}
}

func TestTheSameFormPassesAsItCame(t *testing.T) {
	frame := data(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	for name, c := range map[string]struct {
		form      Form
		o         StreamOptions
		text      string
		end, drop string
	}{
		"chat":                           {Chat, StreamOptions{WantUsage: true}, ": note\n\n" + data(`{"x":[1, 2.50],"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, `no json`, `7`) + frame, data("[DONE]"), ""},
		"a usage frame nobody asked for": {Chat, StreamOptions{}, data(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`), data("[DONE]"), frame},
		"completions":                    {Completions, StreamOptions{}, data(`{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`), data("[DONE]"), ""},
		"messages":                       {Messages, StreamOptions{}, typed(`message_start "message":{}`, "ping", `message_delta "delta":{"stop_reason":"end_turn"}`), typed("message_stop"), ""},
		"responses":                      {Responses, StreamOptions{}, typed(`response.created "sequence_number":0`, `response.output_text.delta "delta":"a"`), typed(`response.incomplete "response":{}`), ""},
		"transcripts":                    {Transcriptions, StreamOptions{}, typed(`transcript.text.delta "delta":"a"`), typed(`transcript.text.done "text":"a"`), ""},
		"images":                         {Images, StreamOptions{Choices: 2}, typed("image_generation.partial_image", "image_generation.completed"), typed(`image_generation.completed "b64_json":""`), ""},
	} {
		got := follow(t, c.form, c.form, c.o, strings.NewReader(c.text+c.drop+c.end+data("late")))
		if got.Out != c.text || got.End != c.end || !got.Done || !got.Finished || got.Failure != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAFailureInsideAStreamIsHeldBack(t *testing.T) {
	for name, c := range map[string]struct {
		form         Form
		stream, want string
	}{
		"a member":            {Chat, data(`{"error":{"message":"overloaded","code":502},"choices":[{"index":0,"finish_reason":"error"}]}`), `{"error":{"message":"overloaded","code":502}}`},
		"a choice":            {Chat, data(`{"choices":[{"index":0,"finish_reason":"error","error":{"code":502}}]}`), `{"error":{"code":502}}`},
		"a bare word":         {Chat, data(`{"error":"broken"}`), `{"error":"broken"}`},
		"a list":              {Chat, data(`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`), `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`},
		"an event":            {Chat, "event: error\ndata: {\"message\":\"broken\"}\n\n", `{"error":{"message":"broken"}}`},
		"an event in prose":   {Chat, "event: error\ndata: out of \"memory\"\n\n", `{"error":"out of \"memory\""}`},
		"Anthropic's":         {Messages, typed(`error "error":{"type":"overloaded_error","message":"Overloaded"}`), `{"error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"a response":          {Responses, typed(`response.failed "response":{"error":{"code":"server_error","message":"broken"},"usage":{"input_tokens":5,"output_tokens":0}}`), `{"error":{"code":"server_error","message":"broken"}}`},
		"an error of several": {Responses, typed(`error "code":"x","message":"broken"`), `{"error":{"type":"error","code":"x","message":"broken"}}`},
	} {
		got := follow(t, c.form, c.form, StreamOptions{}, strings.NewReader(c.stream+data(`{"choices":[]}`, "[DONE]")))
		if got.Failure != c.want || got.Out != "" || got.Done {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAStreamIsFinishedWhenEveryAnswerIs(t *testing.T) {
	one := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	two := `{"choices":[{"index":1,"delta":{"content":"b"}}]}`
	end := `{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`
	for stream, want := range map[string]bool{
		data(one): false, data(one, two): false, data(one, two, end): true, data(end): false, data(two): false,
	} {
		if got := follow(t, Chat, Chat, StreamOptions{Choices: 2}, strings.NewReader(stream)); got.Finished != want || got.Done || got.End != data("[DONE]") {
			t.Errorf("%s: %+v", stream, got)
		}
	}
}

func TestToolsAndThoughtsCountAsText(t *testing.T) {
	for stream, want := range map[string][2]int64{
		data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"get","arguments":""}}]}}]}`): {1, 3},
		data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}`):                {1, 5},
		data(`{"choices":[{"index":0,"delta":{"reasoning":"ab","reasoning_content":"ab"}}]}`):                                    {1, 2},
		data(`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking"}]}}]}`):                                              {1, 21},
		data(`{"choices":[{"index":0,"delta":{"content":"\ud83d\ude00é\u00e9\n"}}]}`):                                            {1, 9},
		data(`{"choices":[{"index":0,"delta":{"content":""}}]}`, `{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`):       {0, 0},
	} {
		if got := follow(t, Chat, Chat, StreamOptions{}, strings.NewReader(stream)); got.Pieces != want[0] || got.Bytes != want[1] {
			t.Errorf("%s: %d pieces, %d bytes", stream, got.Pieces, got.Bytes)
		}
	}
}

func FuzzTheLengthOfATextIsThatOfItsBytes(f *testing.F) {
	f.Add([]byte(`"\ud83d\ude00\u00e9\n\ud83d x \udc00\uD83D\uDE00"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n size
		if len(b) == 0 || b[0] != '"' || json.Unmarshal(b, &n, lenient) != nil {
			return
		}
		if got := text(b); len(got) != int(n) && !strings.ContainsRune(got, '\uFFFD') {
			t.Fatalf("%s: %d, want %d", b, n, len(got))
		}
	})
}
