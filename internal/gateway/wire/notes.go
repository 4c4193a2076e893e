package wire

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chunk is what matters of an event of OpenAI's chat and completions
// (https://platform.openai.com/docs/api-reference/chat-streaming). Groq may
// state the usage in a member of its own.
type chunk struct {
	Choices []struct {
		Index  place `json:"index"`
		Text   size  `json:"text"`
		Finish word  `json:"finish_reason"`
		Error  raw   `json:"error"`
		Delta  struct {
			Content   size       `json:"content"`
			Refusal   size       `json:"refusal"`
			Reasoning size       `json:"reasoning_content"`
			Thought   size       `json:"reasoning"` // OpenRouter's and Groq's name for it
			Tools     []toolSize `json:"tool_calls"`
			Function  toolSize   `json:"function_call"`
		} `json:"delta"`
	} `json:"choices"`
	Usage raw  `json:"usage"`
	Error raw  `json:"error"`
	Tier  word `json:"service_tier"`
	Groq  struct {
		Usage raw `json:"usage"`
	} `json:"x_groq"`
}

type toolSize struct {
	Function struct {
		Name      size `json:"name"`
		Arguments size `json:"arguments"`
	} `json:"function"`
	Name      size `json:"name"`
	Arguments size `json:"arguments"`
}

func (t *toolSize) bytes() int64 {
	return int64(t.Name + t.Arguments + t.Function.Name + t.Function.Arguments)
}

// claudeEvent is what matters of an event of Anthropic's messages
// (https://platform.claude.com/docs/en/build-with-claude/streaming).
type claudeEvent struct {
	Type  word `json:"type"`
	Delta struct {
		Text     size `json:"text"`
		Thinking size `json:"thinking"`
		Partial  size `json:"partial_json"`
		Stop     word `json:"stop_reason"`
	} `json:"delta"`
	Block struct {
		Text size `json:"text"`
		Name size `json:"name"`
	} `json:"content_block"`
	Usage   raw `json:"usage"`
	Error   raw `json:"error"`
	Message struct {
		Usage raw  `json:"usage"`
		Stop  word `json:"stop_reason"`
	} `json:"message"`
}

// typedEvent is what matters of an event of OpenAI's responses and media
// (https://platform.openai.com/docs/api-reference/responses-streaming).
type typedEvent struct {
	Type     word `json:"type"`
	Delta    size `json:"delta"`
	Usage    raw  `json:"usage"`
	Error    raw  `json:"error"`
	Response struct {
		Usage raw  `json:"usage"`
		Error raw  `json:"error"`
		Tier  word `json:"service_tier"`
	} `json:"response"`
}

// note keeps what matters of an event that has data, and tells whether a client
// of the same form gets it. What is no JSON object passes unread.
func (s *Stream) note(e Event) (pass bool) {
	pass = true
	switch s.form {
	case Chat, Completions:
		pass = s.noteChunk(e.Data)
	case Messages:
		s.noteClaude(e.Data)
	default:
		s.noteTyped(e.Data)
	}
	if s.failure == nil && string(e.Name) == "error" {
		s.fail(e.Data)
	}
	return pass
}

func (s *Stream) noteChunk(data []byte) (pass bool) {
	c := &s.chunk
	*c = chunk{Choices: c.Choices[:0]}
	if json.Unmarshal(data, c, lenient) != nil {
		if a := ReadAnswer(s.form, data); a.Error != nil {
			s.fail(a.Error) // in a list, as Gemini writes it
		}
		return true
	}
	s.begun = s.begun || len(c.Choices) > 0 || c.Usage != nil || c.Groq.Usage != nil
	s.tier = Tier(first(string(c.Tier), string(s.tier)))
	var text int64
	for i := range c.Choices {
		choice := &c.Choices[i]
		d := &choice.Delta
		text += int64(choice.Text+d.Content+d.Refusal+max(d.Reasoning, d.Thought)) + d.Function.bytes()
		for j := range d.Tools {
			text += d.Tools[j].bytes()
		}
		if choice.Finish == "error" {
			s.fail(choice.Error)
		}
		s.ended(choice.Index, choice.Finish != "")
	}
	s.count(text)
	if c.Error != nil {
		s.fail(c.Error)
	}
	if c.Usage == nil {
		c.Usage = c.Groq.Usage
	}
	if c.Usage == nil {
		return true
	}
	s.usage.read(s.form, jsontext.Value(c.Usage))
	return len(c.Choices) > 0 || s.o.WantUsage
}

func (s *Stream) noteClaude(data []byte) {
	v := &s.event
	*v = claudeEvent{}
	if json.Unmarshal(data, v, lenient) != nil {
		return
	}
	s.count(int64(v.Delta.Text + v.Delta.Thinking + v.Delta.Partial + v.Block.Text + v.Block.Name))
	s.usage.read(Messages, jsontext.Value(v.Message.Usage))
	s.usage.read(Messages, jsontext.Value(v.Usage))
	s.usage.output = s.usage.output || present(jsontext.Value(v.Usage))
	s.ended(0, v.Delta.Stop != "" || v.Message.Stop != "")
	s.done = v.Type == "message_stop"
	s.begun = s.begun || v.Type != "" && v.Type != "message_stop" && v.Type != "ping"
	if v.Type == "error" || v.Error != nil {
		s.failed(v.Error, data)
	}
}

func (s *Stream) noteTyped(data []byte) {
	v := &s.typed
	*v = typedEvent{}
	if json.Unmarshal(data, v, lenient) != nil {
		return
	}
	name := string(v.Type)
	s.begun = s.begun || name != "" || v.Usage != nil
	s.tier = Tier(first(string(v.Response.Tier), string(s.tier)))
	if strings.HasSuffix(name, ".delta") && !strings.HasSuffix(name, "audio.delta") {
		s.count(int64(v.Delta))
	}
	s.usage.read(s.form, jsontext.Value(v.Usage))
	s.usage.read(s.form, jsontext.Value(v.Response.Usage))
	switch name {
	case "error":
		s.failed(v.Error, data)
	case "response.failed":
		s.failed(v.Response.Error, []byte(`{"message":"the response failed"}`))
	case "response.completed", "response.incomplete", "response.cancelled",
		"speech.audio.done", "transcript.text.done":
		s.done = true
	case "image_generation.completed":
		s.ended(place(len(s.choices)), true)
		s.done = int64(len(s.choices)) >= s.o.Choices
	default:
		if v.Error != nil {
			s.fail(v.Error)
		}
	}
}

func (s *Stream) count(text int64) {
	if text > 0 {
		s.pieces++
		s.textBytes += text
	}
}

func (s *Stream) ended(index place, now bool) {
	if _, known := s.choices[index]; known || len(s.choices) < maxChoices {
		s.choices[index] = s.choices[index] || now
	}
}

// failed is fail with the first that is there.
func (s *Stream) failed(stated raw, otherwise []byte) {
	if stated == nil {
		stated = otherwise
	}
	s.fail(stated)
}

// fail keeps a provider's report of a failure as an object with an error
// member.
func (s *Stream) fail(report []byte) {
	report = bytes.TrimSpace(report)
	if len(report) == 0 {
		report = []byte(`{"message":"the answer ended with an error"}`)
	}
	if !jsontext.Value(report).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		report, _ = jsontext.AppendQuote(nil, string(report)) // what is no UTF-8 is replaced
	}
	s.failure = append(append([]byte(`{"error":`), report...), '}')
}
