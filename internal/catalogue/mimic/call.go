// Package mimic speaks as providers of models do: it reads a call of any route as
// they read it, and writes the whole answer, the stream or the error that they
// would send, in OpenAI's form or in Anthropic's. It is pure, and holds no model:
// what is said is given to it. The practice provider and the upstream of tests
// are made of it.
//
// The formats are those of https://platform.openai.com/docs/api-reference and
// https://platform.claude.com/docs/en/api.
package mimic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

// The routes, as they follow a base URL.
const (
	Chat           = "/chat/completions"
	Completions    = "/completions"
	Responses      = "/responses"
	Embeddings     = "/embeddings"
	Messages       = "/messages"
	CountTokens    = "/messages/count_tokens"
	Images         = "/images/generations"
	Speech         = "/audio/speech"
	Transcriptions = "/audio/transcriptions"
	Moderations    = "/moderations"
)

// Routes lists them.
var Routes = []string{Chat, Completions, Responses, Embeddings, Messages, CountTokens, Images, Speech, Transcriptions, Moderations}

// Streams tells whether a route has streams.
func Streams(route string) bool {
	return route == Chat || route == Completions || route == Responses || route == Messages
}

// Call is a request, as far as a provider's answer depends on it.
type Call struct {
	Route     string
	Model     string
	Stream    bool
	Tool      string // that the call demands to be called; "": none
	MaxOutput int    // tokens; below 0: not stated
	Parts     []string

	tools     []tool
	arguments string // of Tool
	wantUsage bool
	items     int // answers asked for: inputs to embed, images
	format    string
	width     int // of an embedding
}

// body is the union of the routes' members.
type body struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	System         json.RawMessage `json:"system"`
	Instructions   json.RawMessage `json:"instructions"`
	Input          json.RawMessage `json:"input"`
	Prompt         json.RawMessage `json:"prompt"`
	Tools          []tool          `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	MaxTokens      *int            `json:"max_tokens"`
	MaxCompletion  *int            `json:"max_completion_tokens"`
	MaxOutput      *int            `json:"max_output_tokens"`
	N              int             `json:"n"`
	Encoding       string          `json:"encoding_format"`
	ResponseFormat json.RawMessage `json:"response_format"`
	Dimensions     int             `json:"dimensions"`
}

// Read reads a call. An error is a body that is none of its route.
func Read(route, contentType string, raw []byte) (Call, error) {
	media, params, _ := mime.ParseMediaType(contentType)
	if route == Transcriptions && media == "multipart/form-data" {
		return readForm(multipart.NewReader(bytes.NewReader(raw), params["boundary"]))
	}
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return Call{Route: route}, fmt.Errorf("mimic: %w", err)
	}
	c := Call{Route: route, Model: b.Model, Stream: b.Stream && Streams(route), MaxOutput: -1, wantUsage: b.StreamOptions.IncludeUsage, items: max(b.N, 1), width: b.Dimensions}
	for _, most := range []*int{b.MaxTokens, b.MaxCompletion, b.MaxOutput} {
		if most != nil && *most >= 0 {
			c.MaxOutput = *most
		}
	}
	_ = json.Unmarshal(b.ResponseFormat, &c.format) // of chat it is an object
	if route == Embeddings {
		c.format, c.items = b.Encoding, len(parts(b.Input))
	}
	c.read(b)
	for _, t := range b.Tools {
		c.tools = append(c.tools, t.itself())
	}
	c.demand(b.ToolChoice)
	if c.Model == "" && route != Moderations || len(c.Parts) == 0 {
		return c, errors.New("mimic: a model and something to answer are needed")
	}
	return c, nil
}

// read gathers what the call says: the texts whose tokens count.
func (c *Call) read(b body) {
	switch c.Route {
	case Chat, Messages, CountTokens:
		for _, m := range b.Messages {
			c.Parts = append(c.Parts, string(m.Content))
		}
		if len(c.Parts) > 0 && b.System != nil {
			c.Parts = append(c.Parts, string(b.System))
		}
	case Responses, Embeddings, Moderations:
		c.Parts = parts(b.Input)
		if len(c.Parts) > 0 && b.Instructions != nil {
			c.Parts = append(c.Parts, string(b.Instructions))
		}
	default: // what is to be said stands in "input" of speech, elsewhere in "prompt"
		c.Parts = append(parts(b.Prompt), parts(b.Input)...)
	}
}

// parts are the items of a list, or the one value; of a message its content.
func parts(v json.RawMessage) (list []string) {
	if len(v) == 0 || string(v) == "null" {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(v, &items) != nil {
		return []string{string(v)}
	}
	for _, item := range items {
		var message struct {
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(item, &message) == nil && message.Content != nil {
			item = message.Content
		}
		list = append(list, string(item))
	}
	return list
}

// readForm reads the form of a transcription: its file is what counts.
func readForm(r *multipart.Reader) (Call, error) {
	c := Call{Route: Transcriptions, MaxOutput: -1, items: 1}
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, fmt.Errorf("mimic: %w", err)
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return c, fmt.Errorf("mimic: %w", err)
		}
		switch part.FormName() {
		case "model":
			c.Model = string(value)
		case "response_format":
			c.format = string(value)
		case "file":
			c.Parts = []string{string(value)}
		}
	}
	if c.Model == "" || c.Parts == nil {
		return c, errors.New("mimic: a model and a file are needed")
	}
	return c, nil
}

// js is v as JSON.
func js(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and numbers
	return strings.TrimSuffix(b.String(), "\n")
}
