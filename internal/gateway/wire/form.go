package wire

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Form is one of the shapes that a call and its answer may have.
type Form string

// The forms: Messages and CountTokens are Anthropic's, the others OpenAI's.
const (
	Chat           Form = "chat"
	Completions    Form = "completions"
	Responses      Form = "responses"
	Embeddings     Form = "embeddings"
	Messages       Form = "messages"
	CountTokens    Form = "count_tokens"
	Images         Form = "images"
	Speech         Form = "speech"
	Transcriptions Form = "transcriptions"
	Moderations    Form = "moderations"
)

// lenient reads what every SDK reads too: a text that ends in half of a
// surrogate pair, or a member that stands twice, is no reason to lose an answer.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// Answer is what matters of a whole answer. Values are copies; one that is
// absent or null is nil.
type Answer struct {
	Usage  jsontext.Value
	Error  jsontext.Value // an answer with one is a failure, whatever its status said
	Output jsontext.Value // where the answer's text stands, for an estimate
	Model  string         // that served, as the provider names it
	Tier   Tier           // in which it was served
	Apart  bool           // it took something that prices of tokens do not cover
	Valid  bool           // the body is what the form promises
	Empty  bool           // it says neither what its form is there for nor what it took, nor that it failed
}

// answer is what a whole answer of any form may hold.
type answer struct {
	Model   jsontext.Value `json:"model"`
	Usage   jsontext.Value `json:"usage"`
	Error   jsontext.Value `json:"error"`
	Choices jsontext.Value `json:"choices"` // chat, completions
	Content jsontext.Value `json:"content"` // messages
	Output  jsontext.Value `json:"output"`  // responses
	Text    jsontext.Value `json:"text"`    // transcriptions
	Tier    jsontext.Value `json:"service_tier"`
}

// ReadAnswer reads a whole answer. Audio and plain transcripts are no JSON, and
// valid as they are; Gemini wraps an error into a list.
func ReadAnswer(f Form, body []byte) Answer {
	kind := jsontext.Value(body).Kind()
	if kind == '[' {
		var list []answer
		if json.Unmarshal(body, &list, lenient) == nil && len(list) > 0 && present(list[0].Error) {
			return Answer{Error: list[0].Error, Valid: true}
		}
	}
	var a answer
	if kind != '{' || json.Unmarshal(body, &a, lenient) != nil {
		return Answer{Valid: f == Speech || f == Transcriptions && len(bytes.TrimSpace(body)) > 0}
	}
	out := Answer{Usage: orNil(a.Usage), Error: orNil(a.Error), Model: text(a.Model), Valid: true}
	s := statement{}
	s.read(f, out.Usage)
	out.Apart, out.Tier = s.apart()
	out.Tier = Tier(first(text(a.Tier), string(out.Tier)))
	switch f {
	case Chat, Completions:
		out.Output = orNil(a.Choices)
		if out.Error == nil {
			out.Error = choiceError(a.Choices)
		}
	case Messages:
		out.Output = orNil(a.Content)
	case Responses:
		out.Output = orNil(a.Output)
	case Transcriptions:
		out.Output = orNil(a.Text)
	}
	switch f {
	case Chat, Completions, Messages, Responses:
		out.Empty = out.Output == nil && out.Usage == nil && out.Error == nil
	}
	return out
}

// choiceError is the error of a choice that ended with one, as OpenRouter says
// it; nil where none did.
func choiceError(choices jsontext.Value) jsontext.Value {
	var list []struct {
		Finish jsontext.Value `json:"finish_reason"`
		Error  jsontext.Value `json:"error"`
	}
	if !mayFail(choices) || json.Unmarshal(choices, &list, lenient) != nil {
		return nil
	}
	for _, c := range list {
		if text(c.Finish) != "error" {
			continue
		}
		if present(c.Error) {
			return c.Error
		}
		return jsontext.Value(`{"message":"the answer ended with an error"}`)
	}
	return nil
}

// mayFail is quick: it tells choices in which the word for an error cannot stand.
func mayFail(choices jsontext.Value) bool {
	return bytes.Contains(choices, []byte(`"error"`)) || bytes.Contains(choices, []byte(`\u`))
}

func present(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

func orNil(v jsontext.Value) jsontext.Value {
	if present(v) {
		return v
	}
	return nil
}

// text is a JSON string's text; "" for anything else.
func text(v jsontext.Value) string {
	if len(v) == 0 || v.Kind() != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil && len(b) == 0 {
		return ""
	}
	return string(b)
}
