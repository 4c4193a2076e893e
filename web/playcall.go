package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/tenants"
)

// How long a call of the playground may take, and the token that it goes with
// lives.
const (
	playWithin = 2 * time.Minute
	playToken  = 5 * time.Minute
)

// playCall is a call that the playground makes, as anybody would.
type playCall struct {
	Key    tenants.APIKey
	Model  string
	Stream bool
	Wait   int64 // ms that it may wait for room
	Body   []byte
}

// played is what came of a call.
type played struct {
	Status  int
	Header  http.Header
	Text    string // of the answer
	Code    string // of a refusal or an error
	Message string
	Tokens  playTokens
	First   time.Duration // until the first word; until the answer where it came whole
	Took    time.Duration
}

// playTokens are what the answer itself says.
type playTokens struct {
	Known         bool
	Input, Output int64
}

// answerParts is what of an answer, of a piece of one, or of an error is read.
type answerParts struct {
	Choices []struct {
		Message, Delta struct {
			Content string `json:"content"`
		}
	} `json:"choices"`
	Usage *struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"`
	} `json:"error"`
}

// flume takes an answer inside the process as it comes. It belongs to one
// goroutine.
type flume struct {
	began  time.Time
	head   func()       // once, before the first byte
	piece  func(string) // each word of a stream; nil: nobody listens
	out    played
	text   strings.Builder
	whole  bytes.Buffer
	rest   []byte // of a stream: what is no whole line yet
	stream bool
}

// Header is http.ResponseWriter's.
func (f *flume) Header() http.Header { return f.out.Header }

// WriteHeader is http.ResponseWriter's.
func (f *flume) WriteHeader(status int) {
	if f.out.Status != 0 {
		return
	}
	f.out.Status = status
	f.stream = strings.HasPrefix(f.out.Header.Get(echo.HeaderContentType), "text/event-stream")
	f.head()
}

// Write is http.ResponseWriter's.
func (f *flume) Write(b []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	if !f.stream {
		f.note()
		return f.whole.Write(b)
	}
	f.rest = append(f.rest, b...)
	for {
		line, rest, found := bytes.Cut(f.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		f.rest = rest
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok {
			f.take(data)
		}
	}
}

// Flush is http.Flusher's: nothing is held back.
func (*flume) Flush() {}

// SetWriteDeadline is for http.ResponseController: writing never blocks.
func (*flume) SetWriteDeadline(time.Time) error { return nil }

func (f *flume) note() {
	if f.out.First == 0 {
		f.out.First = time.Since(f.began)
	}
}

// take reads one answer, or one piece of it.
func (f *flume) take(data []byte) {
	var a answerParts
	if json.Unmarshal(data, &a) != nil {
		return // [DONE]
	}
	for _, c := range a.Choices {
		if text := c.Delta.Content + c.Message.Content; text != "" {
			f.note()
			f.text.WriteString(text)
			if f.piece != nil {
				f.piece(text)
			}
		}
	}
	if a.Usage != nil {
		f.out.Tokens = playTokens{true, a.Usage.Input, a.Usage.Output}
	}
	if a.Error != nil {
		f.out.Message = a.Error.Message
		f.out.Code = strings.Trim(string(a.Error.Code), `"`)
	}
}

// playThrough makes a call through the gateway, as anybody's goes: with a token
// of the key, that this page mints and nobody else sees. head is called before
// the first byte of the answer, piece for each word of a stream.
func (p *Pages) playThrough(c echo.Context, who auth.Person, call playCall, head func(), piece func(string)) (played, error) {
	token, err := p.tokens.Mint(auth.ClientToken{ID: id.New(), Tenant: who.Tenant, Key: call.Key.ID, ExpiresAt: p.now().Add(playToken)})
	if err != nil {
		return played{}, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), playWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.publicURL+"/v1/chat/completions", bytes.NewReader(call.Body))
	if err != nil {
		return played{}, err
	}
	req.Header.Set(echo.HeaderAuthorization, "Bearer "+token)
	req.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	if call.Wait > 0 {
		req.Header.Set("x-weir-max-wait-ms", strconv.FormatInt(call.Wait, 10))
	}
	req.RemoteAddr = c.Request().RemoteAddr
	f := &flume{began: time.Now(), head: head, piece: piece, out: played{Header: http.Header{}}}
	p.gateway.ServeHTTP(f, req)
	if !f.stream {
		f.take(f.whole.Bytes())
	}
	f.out.Text, f.out.Took = f.text.String(), time.Since(f.began)
	return f.out, nil
}

// playMessage is a message of a chat.
type playMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// playBody is a chat completion as its caller would write it.
type playBody struct {
	Model       string         `json:"model"`
	Messages    []playMessage  `json:"messages"`
	MaxTokens   int64          `json:"max_tokens,omitempty"`
	Temperature *float64       `json:"temperature,omitempty"`
	Stream      bool           `json:"stream,omitempty"`
	Options     *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}
