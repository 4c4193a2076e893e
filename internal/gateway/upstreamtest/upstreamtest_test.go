package upstreamtest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
)

const question = "What is a weir?"

// bodies are small calls of each route; %s stands for further members.
var bodies = map[string]string{
	mimic.Chat:        `{"model":"test-small","messages":[{"role":"user","content":"` + question + `"}]%s}`,
	mimic.Completions: `{"model":"test-small","prompt":"` + question + `"%s}`,
	mimic.Responses:   `{"model":"test-small","input":"` + question + `"%s}`,
	mimic.Embeddings:  `{"model":"test-small","input":["` + question + `"]%s}`,
	mimic.Messages:    `{"model":"test-small","max_tokens":100,"messages":[{"role":"user","content":"` + question + `"}]%s}`,
	mimic.CountTokens: `{"model":"test-small","messages":[{"role":"user","content":"` + question + `"}]%s}`,
	mimic.Images:      `{"model":"test-small","prompt":"` + question + `"%s}`,
	mimic.Speech:      `{"model":"test-small","voice":"alloy","input":"` + question + `"%s}`,
	mimic.Moderations: `{"input":"` + question + `"%s}`,
}

func body(route, more string) string { return strings.Replace(bodies[route], "%s", more, 1) }

// head is the status and the headers of an answer.
type head struct {
	status int
	header http.Header
}

// send makes one call and returns the answer, read as far as it comes.
func send(t *testing.T, u *upstreamtest.Upstream, route, body string, header ...string) (head, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+route, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return head{}, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return head{resp.StatusCode, resp.Header}, string(b), err
}

// payloads are the events of a stream; each named one says its name itself.
func payloads(t *testing.T, stream string) (list []string) {
	t.Helper()
	name := ""
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if name != "" && !strings.HasPrefix(data, `{"type":"`+name+`"`) {
				t.Errorf("the event %s says %s", name, data)
			}
			if data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("no JSON: %s", data)
			}
			list, name = append(list, data), ""
		}
	}
	return list
}

func TestAnHonestAnswerStatesWhatItTookInTheFormOfItsRoute(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	figures := map[string]mimic.Counts{
		mimic.Chat: {Input: 8, Output: 6}, mimic.Completions: {Input: 8, Output: 6}, mimic.Responses: {Input: 8, Output: 6}, mimic.Messages: {Input: 8, Output: 6},
		mimic.Embeddings: {Input: 8}, mimic.Images: {Input: 8, Output: 16},
	}
	if upstreamtest.Prompt(`"`+question+`"`) != 8 {
		t.Fatal("the question counts otherwise")
	}
	for route := range bodies {
		resp, answer, err := send(t, u, route, body(route, ""))
		if err != nil || resp.status != http.StatusOK {
			t.Fatalf("%s: %v, %s", route, err, answer)
		}
		if route != mimic.Speech && !json.Valid([]byte(answer)) {
			t.Errorf("%s: no JSON: %s", route, answer)
		}
		if n, states := figures[route]; states && !strings.Contains(answer, mimic.Usage(route, n)) {
			t.Errorf("%s: %s", route, answer)
		}
		if u.Last().Path != "/v1"+route || u.Last().Route() != route {
			t.Errorf("noted as %+v", u.Last())
		}
		if !mimic.Streams(route) {
			continue
		}
		_, answer, err = send(t, u, route, body(route, `,"stream":true,"stream_options":{"include_usage":true}`))
		list := payloads(t, answer)
		if err != nil || !strings.Contains(answer, mimic.Usage(route, figures[route])) {
			t.Errorf("%s, streamed: %v, %s", route, err, answer)
		}
		last := map[string]string{mimic.Messages: `{"type":"message_stop"}`, mimic.Responses: `{"type":"response.completed"`}[route]
		if last == "" {
			last = "[DONE]"
		}
		if !strings.HasPrefix(list[len(list)-1], last) {
			t.Errorf("%s ends with %s", route, list[len(list)-1])
		}
	}
	_, quiet, _ := send(t, u, mimic.Chat, body(mimic.Chat, `,"stream":true`))
	if strings.Contains(quiet, "usage") {
		t.Errorf("usage that nobody asked for: %s", quiet)
	}
	if n := len(u.Calls()); n != len(bodies)+5 {
		t.Errorf("%d calls are noted", n)
	}
}

func TestAFileIsTranscribed(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("model", "test-small")
	file, _ := w.CreateFormFile("file", "a.wav")
	_, _ = file.Write(make([]byte, 5000))
	_ = w.Close()
	_, answer, err := send(t, u, mimic.Transcriptions, form.String(), "Content-Type", w.FormDataContentType())
	if err != nil || answer != `{"text":"A weir holds a flow.","usage":`+mimic.Usage(mimic.Transcriptions, mimic.Counts{Input: 5, Output: 6})+`}` {
		t.Fatalf("%s, %v", answer, err)
	}
}

func TestADemandedToolIsCalledWithArgumentsThatFit(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	const schema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}`
	const want = `{"city":"weir","days":1}`
	asks := map[string]string{
		mimic.Chat:      `,"tools":[{"type":"function","function":{"name":"weather","parameters":` + schema + `}}],"tool_choice":"required"`,
		mimic.Responses: `,"tools":[{"type":"function","name":"weather","parameters":` + schema + `}],"tool_choice":{"type":"function","name":"weather"}`,
		mimic.Messages:  `,"tools":[{"name":"weather","input_schema":` + schema + `}],"tool_choice":{"type":"any"}`,
	}
	for route, more := range asks {
		_, whole, _ := send(t, u, route, body(route, more))
		quoted, _ := json.Marshal(want)
		if !strings.Contains(whole, `"weather"`) || !strings.Contains(whole, want) && !strings.Contains(whole, string(quoted)) || !json.Valid([]byte(whole)) {
			t.Errorf("%s: %s", route, whole)
		}
		_, stream, _ := send(t, u, route, body(route, more+`,"stream":true`))
		if got := arguments(payloads(t, stream)); got != want {
			t.Errorf("%s, streamed: %q in %s", route, got, stream)
		}
		_, free, _ := send(t, u, route, body(route, strings.Split(more, `,"tool_choice"`)[0]))
		if strings.Contains(free, "city") {
			t.Errorf("%s calls a tool that nobody demanded: %s", route, free)
		}
	}
}

// arguments are the pieces of a tool's arguments, put together.
func arguments(list []string) (all string) {
	for _, p := range list {
		var e struct {
			Type    string          `json:"type"`
			Delta   json.RawMessage `json:"delta"`
			Choices []struct {
				Delta struct {
					Calls []struct {
						Function struct {
							Arguments string `json:"arguments"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		_ = json.Unmarshal([]byte(p), &e)
		for _, c := range e.Choices {
			for _, call := range c.Delta.Calls {
				all += call.Function.Arguments
			}
		}
		var piece string
		var block struct {
			JSON string `json:"partial_json"`
		}
		if e.Type == "response.function_call_arguments.delta" && json.Unmarshal(e.Delta, &piece) == nil {
			all += piece
		}
		if e.Type == "content_block_delta" && json.Unmarshal(e.Delta, &block) == nil {
			all += block.JSON
		}
	}
	return all
}

func TestAScriptBendsEveryRouteAlike(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	for _, route := range []string{mimic.Chat, mimic.Completions, mimic.Responses, mimic.Messages} {
		streamed := body(route, `,"stream":true,"stream_options":{"include_usage":true}`)
		whole := func(name string, s upstreamtest.Script, want func(string) bool) {
			t.Helper()
			u.Next(s, s)
			for _, b := range []string{body(route, ""), streamed} {
				if _, got, err := send(t, u, route, b); err != nil || !want(got) {
					t.Errorf("%s, %s: %v, %s", route, name, err, got)
				}
			}
		}
		has := func(text string) func(string) bool {
			return func(got string) bool { return strings.Contains(got, text) }
		}
		used := mimic.Counts{Input: 30, Cached: 20, Output: 7, Reasoning: 5}
		whole("its own usage", upstreamtest.Script{Used: &used}, has(mimic.Usage(route, used)))
		whole("zero", upstreamtest.Script{Usage: upstreamtest.Zero}, has(mimic.Usage(route, mimic.Counts{})))
		whole("nonsense", upstreamtest.Script{Usage: upstreamtest.Nonsense}, has(`:-1`))
		whole("no usage", upstreamtest.Script{Usage: upstreamtest.Absent}, func(got string) bool { return !strings.Contains(got, `"usage":{`) })
		whole("a failure", upstreamtest.Failed(503), has(map[bool]string{true: `"type":"api_error"`, false: `"type":"server_error"`}[route == mimic.Messages]))

		u.Next(upstreamtest.Script{Cut: 3})
		_, got, err := send(t, u, route, streamed)
		if words := said(payloads(t, got)); err == nil || words != "A weir" {
			t.Errorf("%s, cut after two words: %q, %v", route, words, err)
		}
		u.Next(upstreamtest.ErrorEvent())
		if _, got, err = send(t, u, route, streamed); err != nil || said(payloads(t, got)) != "Half" || !strings.Contains(got, `"error":{`) {
			t.Errorf("%s, an error in the stream: %v, %s", route, err, got)
		}
		for _, end := range []string{"\r", "\r\n"} {
			u.Next(upstreamtest.Script{EndLine: end, NoDone: true})
			if _, got, _ = send(t, u, route, streamed); said(payloads(t, got)) != "A weir holds a flow." {
				t.Errorf("%s, lines that end with %q: %s", route, end, got)
			}
		}
		u.Next(upstreamtest.Script{Cut: 1})
		if _, _, err := send(t, u, route, body(route, "")); err == nil {
			t.Errorf("%s: a whole answer was not cut", route)
		}
	}
}

// said is the text of a stream's words.
func said(list []string) (all string) {
	for _, p := range list {
		var e struct {
			Delta   json.RawMessage `json:"delta"`
			Choices []struct {
				Text  string `json:"text"`
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		_ = json.Unmarshal([]byte(p), &e)
		for _, c := range e.Choices {
			all += c.Text + c.Delta.Content
		}
		var piece string
		var block struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(e.Delta, &piece) == nil {
			all += piece
		} else if json.Unmarshal(e.Delta, &block) == nil {
			all += block.Text
		}
	}
	return all
}

func TestWhatProvidersSendBesideTheirAnswersComesAsScripted(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	u.Next(upstreamtest.Telling(), upstreamtest.HugeHeader(100_000), upstreamtest.Script{Gzip: true}, upstreamtest.EchoKey(401), upstreamtest.Overloaded(), upstreamtest.GeminiQuota(true, true))
	if resp, _, err := send(t, u, mimic.Messages, body(mimic.Messages, "")); err != nil || resp.header.Get("Set-Cookie") == "" {
		t.Errorf("told %v, %v", resp, err)
	}
	if resp, _, err := send(t, u, mimic.Chat, body(mimic.Chat, "")); err != nil || len(resp.header.Get("X-Padding")) != 100_000 {
		t.Error(err)
	}
	resp, zipped, err := send(t, u, mimic.Chat, body(mimic.Chat, ""), "Accept-Encoding", "identity")
	if err != nil || resp.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v, %v", resp, err)
	}
	z, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || !json.Valid(plain) {
		t.Errorf("%s, %v", plain, err)
	}
	if _, got, _ := send(t, u, mimic.Messages, body(mimic.Messages, ""), "X-Api-Key", "sk-ant-1"); !strings.Contains(got, "provided: sk-ant-1.") {
		t.Error(got)
	}
	if resp, got, _ := send(t, u, mimic.Messages, body(mimic.Messages, "")); resp.status != 529 || !strings.Contains(got, "overloaded_error") {
		t.Error(got)
	}
	if resp, got, _ := send(t, u, mimic.Chat, body(mimic.Chat, "")); resp.status != 429 || got[0] != '[' || !json.Valid([]byte(got)) {
		t.Error(got)
	}
}

func TestItsModelsAreListedInBothForms(t *testing.T) {
	t.Parallel()
	u := upstreamtest.New(t)
	names := map[string][]string{}
	for _, version := range []string{"", "2023-06-01"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, u.URL+"/models", nil)
		if version != "" {
			req.Header.Set("Anthropic-Version", version)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Data []struct {
				ID   string `json:"id"`
				Type string `json:"type"`
			} `json:"data"`
		}
		err = json.NewDecoder(resp.Body).Decode(&list)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Data {
			names[version] = append(names[version], m.ID)
			if (m.Type == "model") != (version != "") {
				t.Errorf("%q is a %q", m.ID, m.Type)
			}
		}
	}
	want := map[string][]string{"": upstreamtest.Models, "2023-06-01": upstreamtest.Models}
	if diff := cmp.Diff(want, names); diff != "" || slices.Contains(mimic.Routes, "/models") {
		t.Fatal(diff)
	}
}
