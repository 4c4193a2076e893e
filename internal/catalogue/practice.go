package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// PracticeModels are the models of the practice provider.
var PracticeModels = []string{"practice-large", "practice-small"}

// practice is the provider that needs no key: an honest simulation inside the
// process, without a network. It speaks OpenAI's chat completions, streamed or
// not, counts tokens roughly (four bytes each), and says in every answer that
// no model was asked.
type practice struct{}

// RoundTrip answers as a provider would.
func (practice) RoundTrip(req *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, fmt.Errorf("practice: read request: %w", err)
		}
		body = b
	}
	switch {
	case req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/models"):
		return practiceModels(req), nil
	case req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/chat/completions"):
		return practiceChat(req, body), nil
	}
	return jsonAnswer(req, http.StatusNotFound, practiceError("The practice provider has no such route.")), nil
}

type practiceCall struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	MaxTokens *int   `json:"max_tokens"`
	MaxOutput *int   `json:"max_completion_tokens"`
	Options   struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []json.RawMessage `json:"messages"`
}

type practiceUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type practiceChoice struct {
	Index   int              `json:"index"`
	Message *practiceMessage `json:"message,omitempty"`
	Delta   *practiceMessage `json:"delta,omitempty"`
	Finish  *string          `json:"finish_reason"`
}

type practiceMessage struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
}

type practiceAnswer struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Choices []practiceChoice `json:"choices"`
	Usage   *practiceUsage   `json:"usage,omitempty"`
}

func practiceChat(req *http.Request, body []byte) *http.Response {
	var call practiceCall
	if err := json.Unmarshal(body, &call); err != nil || len(call.Messages) == 0 {
		return jsonAnswer(req, http.StatusBadRequest, practiceError("The practice provider needs a model and at least one message."))
	}
	words, cut := practiceWords(call)
	finish := "stop"
	if cut {
		finish = "length"
	}
	usage := practiceUsage{Prompt: 3 + len(bytes.Join(rawBytes(call.Messages), nil))/4, Completion: len(words)}
	usage.Total = usage.Prompt + usage.Completion
	answer := practiceAnswer{ID: fmt.Sprintf("chatcmpl-practice-%d", time.Now().UnixNano()), Object: "chat.completion", Created: time.Now().Unix(), Model: call.Model}
	if call.Stream {
		return practiceStream(req, answer, words, finish, usage, call.Options.IncludeUsage)
	}
	answer.Usage = &usage
	answer.Choices = []practiceChoice{{Message: &practiceMessage{Role: "assistant", Content: strings.Join(words, "")}, Finish: &finish}}
	b, _ := json.Marshal(answer)
	return jsonAnswer(req, http.StatusOK, b)
}

// practiceWords is the answer, one word a token, no longer than was asked for.
func practiceWords(call practiceCall) (words []string, cut bool) {
	text := "This is Weir's practice provider: your call came through, was limited and counted, and no model was asked. You sent " +
		fmt.Sprintf("%s to %s.", plural(len(call.Messages), "message"), call.Model)
	words = strings.SplitAfter(text, " ")
	for _, limit := range []*int{call.MaxOutput, call.MaxTokens} {
		if limit != nil && *limit >= 0 && *limit < len(words) {
			words, cut = words[:*limit], true
		}
	}
	return words, cut
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func practiceStream(req *http.Request, answer practiceAnswer, words []string, finish string, usage practiceUsage, withUsage bool) *http.Response {
	r, w := io.Pipe()
	answer.Object = "chat.completion.chunk"
	go func() {
		send := func(choices []practiceChoice, u *practiceUsage) error {
			answer.Choices, answer.Usage = choices, u
			b, _ := json.Marshal(answer)
			_, err := fmt.Fprintf(w, "data: %s\n\n", b)
			return err
		}
		err := send([]practiceChoice{{Delta: &practiceMessage{Role: "assistant"}}}, nil)
		for _, word := range words {
			if err == nil && req.Context().Err() == nil {
				err = send([]practiceChoice{{Delta: &practiceMessage{Content: word}}}, nil)
			}
		}
		err = errors.Join(err, req.Context().Err(), send([]practiceChoice{{Delta: &practiceMessage{}, Finish: &finish}}, nil))
		if withUsage {
			err = errors.Join(err, send([]practiceChoice{}, &usage))
		}
		_, last := io.WriteString(w, "data: [DONE]\n\n")
		_ = w.CloseWithError(errors.Join(err, last))
	}()
	return answerWith(req, http.StatusOK, "text/event-stream", r)
}

func practiceModels(req *http.Request) *http.Response {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, m := range PracticeModels {
		list.Data = append(list.Data, model{m, "model", "practice"})
	}
	b, _ := json.Marshal(list)
	return jsonAnswer(req, http.StatusOK, b)
}

func practiceError(message string) []byte {
	return fmt.Appendf(nil, `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`, message)
}

func rawBytes(raw []json.RawMessage) (out [][]byte) {
	for _, r := range raw {
		out = append(out, r)
	}
	return out
}

func jsonAnswer(req *http.Request, status int, body []byte) *http.Response {
	return answerWith(req, status, "application/json", io.NopCloser(bytes.NewReader(body)))
}

func answerWith(req *http.Request, status int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: body, ContentLength: -1, Request: req,
	}
}
