package wire

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// segment is a block of an answer while it comes.
type segment struct {
	kind     string // text, thinking, tool_use
	id, name string
	pending  []byte // came, and is not said yet
	index    int    // among the blocks, once it is open
	open     bool
	closed   bool // what still comes has no place
	shape    shape
}

// shape follows brackets of a JSON text that comes in pieces.
type shape struct {
	depth             int
	begun             bool
	inString, escaped bool
}

func (s *shape) take(piece []byte) {
	for _, c := range piece {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = !s.inString
		case s.inString:
		case c == '{' || c == '[':
			s.depth++
			s.begun = true
		case c == '}' || c == ']':
			s.depth--
		}
	}
}

// whole tells whether nothing more can come of a segment whose pieces were all
// said.
func (s *segment) whole() bool {
	return s.kind != "tool_use" || s.shape.begun && s.shape.depth <= 0
}

// say adds a piece to the last segment, if it is of this kind, or begins one.
func (w *messagesWriter) say(kind, piece string) {
	if piece == "" {
		return
	}
	if last := len(w.waiting) - 1; last >= 0 && w.waiting[last].kind == kind {
		w.waiting[last].pending = append(w.waiting[last].pending, piece...)
	} else {
		w.waiting = append(w.waiting, &segment{kind: kind, pending: []byte(piece)})
	}
	w.held += len(piece)
}

// call adds a piece of a tool's call. A provider that numbers none, or all
// alike, begins a new one with each id and name.
func (w *messagesWriter) call(c chatToolCall) {
	position := len(w.calls) - 1
	switch {
	case c.Index != nil:
		position = *c.Index
	case c.ID != "" || position < 0:
		position++
	}
	s := w.calls[position]
	if s == nil || c.Function.Name != "" && c.ID != "" && s.id != "" && s.id != toolID(c.ID) {
		if len(w.calls) >= maxChoices {
			return
		}
		s = &segment{kind: "tool_use", id: toolID(c.ID), name: c.Function.Name}
		w.calls[position] = s
		w.waiting = append(w.waiting, s)
	}
	if s.closed {
		return
	}
	s.id, s.name = first(s.id, toolID(c.ID)), first(s.name, c.Function.Name)
	s.pending = append(s.pending, c.Function.Arguments...)
	w.held += len(c.Function.Arguments)
}

// heldLimit is how much waits for an earlier block to be whole, or for the name
// of a tool that is called.
const heldLimit = 1 << 20

// pump says what can be said: the pieces of the first segment, and its end once
// it is whole and another waits, or too much does. all ends them all.
func (w *messagesWriter) pump(out []byte, all bool) []byte {
	for len(w.waiting) > 0 {
		s := w.waiting[0]
		if !s.open {
			if s.kind == "tool_use" && s.name == "" && !all && w.held < heldLimit {
				return out // its name is still to come
			}
			out = w.open(out, s)
		}
		w.held -= len(s.pending)
		out = s.flush(out)
		if !all && (len(w.waiting) == 1 || !s.whole() && w.held < heldLimit) {
			return out
		}
		out = event(out, "content_block_stop", indexed{Type: "content_block_stop", Index: s.index})
		s.closed, s.pending = true, nil
		w.waiting = w.waiting[1:]
	}
	return out
}

// indexed is an event about a block.
type indexed struct {
	Type  string         `json:"type"`
	Index int            `json:"index"`
	Block jsontext.Value `json:"content_block,omitzero"`
	Delta *claudePiece   `json:"delta,omitzero"`
}

type claudePiece struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitzero"`
	Thinking string `json:"thinking,omitzero"`
	Partial  string `json:"partial_json,omitzero"`
}

func (w *messagesWriter) open(out []byte, s *segment) []byte {
	s.open, s.index = true, w.blocks
	w.blocks++
	var block string
	switch s.kind {
	case "text":
		block = `{"type":"text","text":""}`
	case "thinking":
		block = `{"type":"thinking","thinking":"","signature":""}`
	default:
		id := first(s.id, "call_"+strconv.Itoa(s.index))
		block = `{"type":"tool_use","id":` + string(quoted(id)) + `,"name":` + string(quoted(s.name)) + `,"input":{}}`
	}
	return event(out, "content_block_start", indexed{Type: "content_block_start", Index: s.index, Block: jsontext.Value(block)})
}

func (s *segment) flush(out []byte) []byte {
	if len(s.pending) == 0 {
		return out
	}
	p := claudePiece{}
	switch s.kind {
	case "text":
		p.Type, p.Text = "text_delta", string(s.pending)
	case "thinking":
		p.Type, p.Thinking = "thinking_delta", string(s.pending)
	default:
		p.Type, p.Partial = "input_json_delta", string(s.pending)
		s.shape.take(s.pending)
	}
	s.pending = s.pending[:0]
	return event(out, "content_block_delta", indexed{Type: "content_block_delta", Index: s.index, Delta: &p})
}
