package wire

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/fault"
	"weir/internal/limits"
)

// AnswerOptions are what a translated answer says of itself; "" leaves what the
// provider said.
type AnswerOptions struct {
	ID, Model string
	Created   int64          // Unix seconds; OpenAI's forms only
	Tokens    *limits.Tokens // what the call is settled with; nil: what the provider stated
}

func notThatAnswer(err error) error {
	return fault.New(fault.Upstream, "upstream_invalid_response", "The provider's answer is not what its API promises.").Because(err)
}

// stated are the tokens that a translated answer states.
func (o AnswerOptions) stated(f Form, usage jsontext.Value) limits.Tokens {
	if o.Tokens != nil {
		return *o.Tokens
	}
	t, _ := Usage(f, usage) // nothing that can be read is nothing
	return t
}

func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// MessagesToChatAnswer writes a whole answer of Anthropic's as one of OpenAI's.
// A body that is no such answer is Upstream, upstream_invalid_response.
func MessagesToChatAnswer(body []byte, o AnswerOptions) ([]byte, error) {
	var a struct {
		ID      string         `json:"id"`
		Type    string         `json:"type"`
		Model   string         `json:"model"`
		Content []claudeBlock  `json:"content"`
		Stop    string         `json:"stop_reason"`
		Usage   jsontext.Value `json:"usage"`
	}
	if err := json.Unmarshal(body, &a, lenient); err != nil || a.Type != "message" {
		return nil, notThatAnswer(err)
	}
	usage, err := encode(toChatFigures(o.stated(Messages, a.Usage)))
	if err != nil {
		return nil, err
	}
	finish := chatReason(a.Stop)
	return encode(chatAnswer{
		ID: first(o.ID, a.ID), Object: "chat.completion", Created: o.Created, Model: first(o.Model, a.Model),
		Choices: []chatChoice{{Message: answerMessage(a.Content), Finish: &finish}},
		Usage:   usage,
	})
}

// answerMessage says an answer's blocks in one message. Blocks of tools that
// ran at Anthropic's are no part of it.
func answerMessage(blocks []claudeBlock) *chatMessage {
	m := &chatMessage{Role: "assistant", Refusal: jsontext.Value("null")}
	var said, thought strings.Builder
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "text":
			said.WriteString(b.Text)
		case "thinking":
			thought.WriteString(b.Thinking)
			m.Thinking = append(m.Thinking, signedThought(b.Thinking, b.Signature))
		case "redacted_thinking":
			m.Thinking = append(m.Thinking, sealedThought(b.Data))
		case "tool_use":
			input := orNil(b.Input)
			if input == nil {
				input = jsontext.Value("{}")
			}
			m.ToolCalls = append(m.ToolCalls, chatToolCall{ID: b.ID, Type: "function", Function: chatFunction{b.Name, loose(input)}})
		}
	}
	m.Reasoning, m.Content = thought.String(), quoted(said.String())
	if said.Len() == 0 && len(m.ToolCalls) > 0 {
		m.Content = jsontext.Value("null")
	}
	return m
}

// ChatToMessagesAnswer writes a whole answer of OpenAI's as one of Anthropic's.
// A body that is no such answer is Upstream, upstream_invalid_response.
func ChatToMessagesAnswer(body []byte, o AnswerOptions) ([]byte, error) {
	var a struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Choices []struct {
			Message answeredMessage `json:"message"`
			Finish  string          `json:"finish_reason"`
		} `json:"choices"`
		Usage jsontext.Value `json:"usage"`
	}
	if err := json.Unmarshal(body, &a, lenient); err != nil || len(a.Choices) == 0 {
		return nil, notThatAnswer(err)
	}
	m := &a.Choices[0].Message
	content, err := m.blocks()
	if err != nil {
		return nil, notThatAnswer(err)
	}
	stop := claudeReason(a.Choices[0].Finish, len(m.ToolCalls) > 0)
	if text(m.Refusal) != "" {
		stop = "refusal"
	}
	return encode(claudeAnswer{
		ID: first(o.ID, a.ID), Type: "message", Role: "assistant", Model: first(o.Model, a.Model),
		Content: content, StopReason: &stop, Usage: toClaudeFigures(o.stated(Chat, a.Usage)),
	})
}

// answeredMessage is an answer's message; providers differ in what they call
// its reasoning.
type answeredMessage struct {
	chatMessage
	Thought string `json:"reasoning"`
}

// blocks says a message in blocks: the thought, the text, the calls. Content in
// parts, as Mistral's reasoning models write it, is read for its texts.
func (m *answeredMessage) blocks() ([]jsontext.Value, error) {
	out := thoughts(m.Thinking)
	if thought := first(m.Reasoning, m.Thought); len(out) == 0 && thought != "" {
		out = append(out, signedThought(thought, ""))
	}
	parts, err := chatParts(m.Content, "")
	if err != nil {
		return nil, err
	}
	if refusal := text(m.Refusal); refusal != "" {
		parts = append(parts, chatPart{Type: "text", Text: refusal})
	}
	for _, p := range parts {
		if p.Type != "text" || p.Text == "" {
			continue
		}
		b, err := encode(claudeBlock{Type: "text", Text: p.Text})
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	for _, call := range m.ToolCalls {
		b, err := encodeCall(call)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
