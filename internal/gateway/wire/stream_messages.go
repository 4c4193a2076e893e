package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// messagesWriter makes events of Anthropic's messages
// (https://platform.claude.com/docs/en/build-with-claude/streaming) of the
// chunks of OpenAI's chat. Anthropic's blocks come one after the other, while
// chunks may change between texts and calls: what comes for a later block waits
// until the one before it is whole.
type messagesWriter struct {
	o         StreamOptions
	id, model string
	begun     bool
	waiting   []*segment // the first is the open one, if any is
	calls     map[int]*segment
	blocks    int // begun so far
	held      int // bytes that wait
	finish    string
}

type chatStreamEvent struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index place `json:"index"`
		Delta struct {
			Content   jsontext.Value `json:"content"`
			Refusal   word           `json:"refusal"`
			Reasoning word           `json:"reasoning_content"`
			Thought   word           `json:"reasoning"`
			ToolCalls []chatToolCall `json:"tool_calls"`
		} `json:"delta"`
		Finish word `json:"finish_reason"`
	} `json:"choices"`
}

func (w *messagesWriter) next(out []byte, e Event) []byte {
	var v chatStreamEvent
	if json.Unmarshal(e.Data, &v, lenient) != nil {
		return out
	}
	w.id, w.model = first(w.id, v.ID), first(w.model, v.Model)
	for i := range v.Choices {
		c := &v.Choices[i]
		if c.Index != 0 {
			continue // Anthropic's form has one answer
		}
		out = w.begin(out)
		d := &c.Delta
		w.say("thinking", first(string(d.Reasoning), string(d.Thought)))
		w.say("text", contentText(d.Content))
		w.say("text", string(d.Refusal))
		for _, call := range d.ToolCalls {
			w.call(call)
		}
		if d.Refusal != "" {
			w.finish = "content_filter"
		}
		w.finish = first(w.finish, string(c.Finish))
		out = w.pump(out, c.Finish != "")
	}
	return out
}

// contentText is the text of a piece, which may be a list of parts.
func contentText(v jsontext.Value) (s string) {
	parts, err := chatParts(v, "")
	if err != nil {
		return ""
	}
	for _, p := range parts {
		if p.Type == "text" {
			s += p.Text
		}
	}
	return s
}

func (w *messagesWriter) begin(out []byte) []byte {
	if w.begun {
		return out
	}
	w.begun = true
	a := claudeAnswer{ID: first(w.o.ID, w.id), Type: "message", Role: "assistant", Model: first(w.o.Model, w.model)}
	out = event(out, "message_start", struct {
		Type    string       `json:"type"`
		Message claudeAnswer `json:"message"`
	}{"message_start", a})
	return append(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

// end says why the answer ended and what it took, all figures in one.
func (w *messagesWriter) end(out []byte, t limits.Tokens) []byte {
	out = w.pump(w.begin(out), true)
	var v struct {
		Type  string `json:"type"`
		Delta struct {
			Reason   string  `json:"stop_reason"`
			Sequence *string `json:"stop_sequence"`
		} `json:"delta"`
		Usage claudeFigures `json:"usage"`
	}
	v.Type, v.Delta.Reason, v.Usage = "message_delta", claudeReason(w.finish, len(w.calls) > 0), toClaudeFigures(t)
	out = event(out, "message_delta", v)
	return append(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

func event(out []byte, name string, v any) []byte {
	b, err := encode(v)
	if err != nil {
		return out // nothing that comes of a valid chunk
	}
	out = append(append(append(out, "event: "...), name...), "\ndata: "...)
	return append(append(out, b...), "\n\n"...)
}
