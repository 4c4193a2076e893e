package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// chatWriter makes chunks of OpenAI's chat
// (https://platform.openai.com/docs/api-reference/chat-streaming) of the events
// of Anthropic's messages.
type chatWriter struct {
	o         StreamOptions
	id, model string
	begun     bool
	blocks    map[int]*claudeStreamBlock // that are open, by index
	tools     int                        // begun so far
	thoughts  int                        // sealed or signed, so far
	ended     bool                       // the finish reason is out
}

// claudeStreamBlock is a block of an answer while it comes.
type claudeStreamBlock struct {
	claudeBlock

	tool      int // position among the calls
	pieces    bool
	thinking  strings.Builder
	signature strings.Builder
}

type claudeStreamEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
	} `json:"message"`
	Block claudeBlock `json:"content_block"`
	Delta struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Partial   string `json:"partial_json"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
}

func (w *chatWriter) next(out []byte, e Event) []byte {
	var v claudeStreamEvent
	if json.Unmarshal(e.Data, &v, lenient) != nil {
		return out
	}
	switch v.Type {
	case "ping":
		return append(out, ": ping\n\n"...) // keeps the connection, and is no chunk
	case "message_start":
		w.id, w.model = v.Message.ID, v.Message.Model
		return w.begin(out)
	case "content_block_start":
		return w.open(w.begin(out), &v)
	case "content_block_delta":
		return w.piece(w.begin(out), &v)
	case "content_block_stop":
		return w.close(out, v.Index)
	case "message_delta":
		if v.Delta.Stop != "" {
			return w.finish(w.begin(out), v.Delta.Stop)
		}
	}
	return out
}

func (w *chatWriter) begin(out []byte) []byte {
	if w.begun {
		return out
	}
	w.begun = true
	return w.delta(out, chatDelta{Role: "assistant", Content: new(string)})
}

func (w *chatWriter) open(out []byte, v *claudeStreamEvent) []byte {
	if len(w.blocks) >= maxChoices {
		return out // more than are ever open at once
	}
	b := &claudeStreamBlock{claudeBlock: v.Block}
	b.signature.WriteString(b.Signature)
	w.blocks[v.Index] = b
	switch b.Type {
	case "text":
		return w.text(out, b.Text)
	case "thinking":
		return w.thought(out, b, b.Thinking)
	case "tool_use":
		b.tool = w.tools
		w.tools++
		return w.call(out, b, chatToolCall{ID: b.ID, Type: "function", Function: chatFunction{Name: b.Name}})
	}
	return out
}

func (w *chatWriter) piece(out []byte, v *claudeStreamEvent) []byte {
	b := w.blocks[v.Index]
	if b == nil {
		return out
	}
	switch v.Delta.Type {
	case "text_delta":
		return w.text(out, v.Delta.Text)
	case "thinking_delta":
		return w.thought(out, b, v.Delta.Thinking)
	case "signature_delta":
		b.signature.WriteString(v.Delta.Signature)
	case "input_json_delta":
		if v.Delta.Partial != "" && b.Type == "tool_use" {
			b.pieces = true
			return w.call(out, b, chatToolCall{Function: chatFunction{Arguments: loose(v.Delta.Partial)}})
		}
	}
	return out
}

// close says what was only known at a block's end: an input that came in one,
// and a thought with its signature.
func (w *chatWriter) close(out []byte, index int) []byte {
	b := w.blocks[index]
	delete(w.blocks, index)
	switch {
	case b == nil:
	case b.Type == "tool_use" && !b.pieces:
		input := orNil(b.Input)
		if input == nil {
			input = jsontext.Value("{}")
		}
		return w.call(out, b, chatToolCall{Function: chatFunction{Arguments: loose(input)}})
	case b.Type == "thinking" && b.signature.Len() > 0:
		return w.seal(out, signedThought(b.thinking.String(), b.signature.String()))
	case b.Type == "redacted_thinking":
		return w.seal(out, sealedThought(b.Data))
	}
	return out
}

// seal says a thought that may be sent back. Its position lets SDKs that gather
// a stream put it together.
func (w *chatWriter) seal(out []byte, thought jsontext.Value) []byte {
	position := jsontext.Value(`{"index":` + strconv.Itoa(w.thoughts) + "," + string(thought[1:]))
	w.thoughts++
	return w.delta(out, chatDelta{Thinking: []jsontext.Value{position}})
}

func (w *chatWriter) text(out []byte, s string) []byte {
	if s == "" {
		return out
	}
	return w.delta(out, chatDelta{Content: &s})
}

func (w *chatWriter) thought(out []byte, b *claudeStreamBlock, s string) []byte {
	if s == "" {
		return out
	}
	b.thinking.WriteString(s)
	return w.delta(out, chatDelta{Reasoning: s})
}

func (w *chatWriter) call(out []byte, b *claudeStreamBlock, call chatToolCall) []byte {
	call.Index = &b.tool
	return w.delta(out, chatDelta{ToolCalls: []chatToolCall{call}})
}

func (w *chatWriter) finish(out []byte, stop string) []byte {
	if w.ended {
		return out
	}
	w.ended = true
	reason := chatReason(stop)
	return w.chunk(out, []chatChoice{{Delta: &chatDelta{}, Finish: &reason}}, nil)
}

func (w *chatWriter) delta(out []byte, d chatDelta) []byte {
	return w.chunk(out, []chatChoice{{Delta: &d}}, nil)
}

// chunk writes one. Where the usage frame is asked for, every other chunk says
// that its usage is null.
func (w *chatWriter) chunk(out []byte, choices []chatChoice, usage jsontext.Value) []byte {
	if usage == nil && w.o.WantUsage {
		usage = jsontext.Value("null")
	}
	b, err := encode(chatAnswer{
		ID: first(w.o.ID, w.id), Object: "chat.completion.chunk", Created: w.o.Created, Model: first(w.o.Model, w.model),
		Choices: choices, Usage: usage,
	})
	if err != nil {
		return out // nothing that comes of a valid event
	}
	return append(append(append(out, "data: "...), b...), "\n\n"...)
}

func (w *chatWriter) end(out []byte, t limits.Tokens) []byte {
	out = w.finish(w.begin(out), "end_turn")
	if w.o.WantUsage {
		if usage, err := encode(toChatFigures(t)); err == nil {
			out = w.chunk(out, nil, usage)
		}
	}
	return append(out, "data: [DONE]\n\n"...)
}
