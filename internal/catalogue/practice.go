package catalogue

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/catalogue/mimic"
)

// PracticeModels are the models of the practice provider.
var PracticeModels = []string{"practice-large", "practice-small"}

// practice is the provider that needs no key: an honest simulation inside the
// process, without a network. It speaks every route in OpenAI's form and in
// Anthropic's, streamed or not, counts tokens roughly (four bytes each), and says
// in every text that no model was asked. A picture is one grey dot, speech a
// moment of silence.
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
	route := strings.TrimPrefix(req.URL.Path, "/v1")
	name, isModel := strings.CutPrefix(route, "/models/")
	anthropic := req.Header.Get("Anthropic-Version") != ""
	switch {
	case req.Method == http.MethodGet && route == "/models":
		return practiceAnswer(req, http.StatusOK, mimic.ModelList(anthropic, "practice", PracticeModels...)), nil
	case req.Method == http.MethodGet && isModel && slices.Contains(PracticeModels, name):
		return practiceAnswer(req, http.StatusOK, mimic.Model(anthropic, "practice", name)), nil
	case req.Method == http.MethodPost && slices.Contains(mimic.Routes, route):
		return practiceCall(req, route, body), nil
	}
	return practiceAnswer(req, http.StatusNotFound, mimic.Error(route, http.StatusNotFound, "The practice provider has no such route.")), nil
}

func practiceCall(req *http.Request, route string, body []byte) *http.Response {
	call, err := mimic.Read(route, req.Header.Get("Content-Type"), body)
	if err != nil {
		return practiceAnswer(req, http.StatusBadRequest, mimic.Error(route, http.StatusBadRequest, "The practice provider needs a model and something to answer."))
	}
	now := time.Now()
	reply := call.Honest(practiceWords(call), now)
	reply.ID = fmt.Sprintf("practice-%d", now.UnixNano())
	if call.Stream {
		return practiceStream(req, call, reply)
	}
	contentType, text := call.Whole(reply)
	return answerWith(req, http.StatusOK, contentType, io.NopCloser(strings.NewReader(text)))
}

// practiceWords is what is said to every call, one word a token.
func practiceWords(call mimic.Call) []string {
	things := "messages"
	if len(call.Parts) == 1 {
		things = "message"
	}
	return strings.SplitAfter(fmt.Sprintf("This is Weir's practice provider: your call came through, was limited and counted, and no model was asked. You sent %d %s to %s.",
		len(call.Parts), things, call.Model), " ")
}

func practiceStream(req *http.Request, call mimic.Call, reply mimic.Reply) *http.Response {
	r, w := io.Pipe()
	go func() {
		var text bytes.Buffer
		for step := range call.Steps(reply) {
			text.Reset()
			for _, e := range step.Events {
				text.WriteString(e.Text("\n"))
			}
			err := req.Context().Err()
			if err == nil {
				_, err = w.Write(text.Bytes())
			}
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
		_ = w.Close()
	}()
	return answerWith(req, http.StatusOK, "text/event-stream", r)
}

func practiceAnswer(req *http.Request, status int, body string) *http.Response {
	return answerWith(req, status, "application/json", io.NopCloser(strings.NewReader(body)))
}

func answerWith(req *http.Request, status int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: body, ContentLength: -1, Request: req,
	}
}
