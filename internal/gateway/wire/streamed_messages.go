package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messageEvents are those of a message of Anthropic's: each block in one piece.
func messageEvents(body []byte) (out []byte, err error) {
	var a members
	var blocks []members
	if err := json.Unmarshal(body, &a, lenient); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a["content"], &blocks, lenient); err != nil {
		return nil, err
	}
	null := jsontext.Value("null")
	begun, err := a.with("content", jsontext.Value("[]")).with("stop_reason", null).with("stop_sequence", null).encode()
	if err != nil {
		return nil, err
	}
	out = saying(out, "message_start", members{"type": quoted("message_start"), "message": begun})
	for i, b := range blocks {
		if out, err = blockEvents(out, i, b); err != nil {
			return nil, err
		}
	}
	delta, err := members{"stop_reason": orNull(a["stop_reason"]), "stop_sequence": orNull(a["stop_sequence"])}.encode()
	if err != nil {
		return nil, err
	}
	end := members{"type": quoted("message_delta"), "delta": delta}
	if present(a["usage"]) {
		end["usage"] = a["usage"]
	}
	out = saying(out, "message_delta", end)
	return append(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...), nil
}

// blockEvents say one block: what comes in pieces in streams of Anthropic's own is
// empty at its beginning.
func blockEvents(out []byte, index int, b members) ([]byte, error) {
	begun := b
	var pieces []members
	piece := func(kind, name string, v jsontext.Value) {
		if present(v) {
			pieces = append(pieces, members{"type": quoted(kind), name: v})
		}
	}
	switch text(b["type"]) {
	case "text":
		begun = b.with("text", quoted(""))
		piece("text_delta", "text", b["text"])
	case "thinking":
		begun = b.with("thinking", quoted("")).with("signature", quoted(""))
		piece("thinking_delta", "thinking", b["thinking"])
		piece("signature_delta", "signature", b["signature"])
	case "tool_use", "server_tool_use":
		begun = b.with("input", jsontext.Value("{}"))
		if present(b["input"]) {
			piece("input_json_delta", "partial_json", quoted(compacted(b["input"])))
		}
	}
	block, err := begun.encode()
	if err != nil {
		return nil, err
	}
	out = event(out, "content_block_start", indexed{Type: "content_block_start", Index: index, Block: block})
	for _, p := range pieces {
		delta, err := p.encode()
		if err != nil {
			return nil, err
		}
		n, err := encode(index)
		if err != nil {
			return nil, err
		}
		out = saying(out, "content_block_delta", members{"type": quoted("content_block_delta"), "index": n, "delta": delta})
	}
	return event(out, "content_block_stop", indexed{Type: "content_block_stop", Index: index}), nil
}
