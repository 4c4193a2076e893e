package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// readMessages makes turns of messages. System and developer messages become
// the system text, wherever they stand; messages of one side in a row become
// one turn, as Anthropic demands.
func (r *claudeRequest) readMessages(body *jsonbody.Object) error {
	var list []chatMessage
	if err := decode(body.Get("messages"), "/messages", &list); err != nil {
		return err
	}
	for i := range list {
		if err := r.take(&list[i], at("/messages", i)); err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 {
		return jsonbody.Field("/messages", "missing_required_parameter", "A message of the user is needed.")
	}
	return nil
}

func (r *claudeRequest) take(m *chatMessage, pointer string) error {
	switch m.Role {
	case "system", "developer":
		blocks, err := contentBlocks(m.Content, pointer+"/content")
		r.System = append(r.System, blocks...)
		return err
	case "user":
		blocks, err := contentBlocks(m.Content, pointer+"/content")
		r.add("user", blocks)
		return err
	case "assistant":
		blocks, err := assistantBlocks(m, pointer)
		r.add("assistant", blocks)
		return err
	case "tool":
		block, err := toolResult(m, pointer)
		r.add("user", []jsontext.Value{block})
		return err
	}
	return cannotSay(pointer+"/role", "the role "+strconv.Quote(m.Role))
}

// add begins a turn or goes on with the last one.
func (r *claudeRequest) add(role string, blocks []jsontext.Value) {
	if len(blocks) == 0 {
		return
	}
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == role {
		r.Messages[last].Content = append(r.Messages[last].Content, blocks...)
		return
	}
	r.Messages = append(r.Messages, claudeMessage{role, blocks})
}

// chatParts are the parts of a content, which may be a bare text.
func chatParts(v jsontext.Value, pointer string) (parts []chatPart, err error) {
	if present(v) && v.Kind() == '"' {
		return []chatPart{{Type: "text", Text: text(v)}}, nil
	}
	return parts, decode(v, pointer, &parts)
}

// contentBlocks says a content in blocks. Anthropic refuses texts of nothing but
// white space: they lengthen the text before them, or are left out.
func contentBlocks(v jsontext.Value, pointer string) (out []jsontext.Value, err error) {
	parts, err := chatParts(v, pointer)
	if err != nil {
		return nil, err
	}
	var blocks []*claudeBlock
	for i := range parts {
		b, err := block(&parts[i], at(pointer, i))
		if err != nil {
			return nil, err
		}
		b.CacheControl = orNil(parts[i].CacheControl)
		if b.Type != "text" || strings.TrimSpace(b.Text) != "" {
			blocks = append(blocks, b)
		} else if last := len(blocks) - 1; last >= 0 && blocks[last].Type == "text" {
			blocks[last].Text += b.Text
		}
	}
	for _, b := range blocks {
		v, err := encode(b)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func block(p *chatPart, pointer string) (*claudeBlock, error) {
	switch {
	case p.Type == "text":
		return &claudeBlock{Type: "text", Text: p.Text}, nil
	case p.Type == "refusal":
		return &claudeBlock{Type: "text", Text: p.Refusal}, nil
	case p.Type == "image_url" && p.ImageURL != nil:
		if b := imageBlock(p.ImageURL.URL); b != nil {
			return b, nil
		}
		return nil, cannotSay(pointer+"/image_url/url", "an image that is neither base64 data nor at a web address")
	case p.Type == "file" && p.File != nil:
		if p.File.ID != "" {
			return nil, cannotSay(pointer+"/file/file_id", "a file that was uploaded elsewhere")
		}
		if b := documentBlock(p.File); b != nil {
			return b, nil
		}
		return nil, cannotSay(pointer+"/file/file_data", "a file that is neither PDF nor plain text")
	}
	return nil, cannotSay(pointer+"/type", "a part of the type "+strconv.Quote(p.Type))
}

// assistantBlocks are an answer of before: signed thoughts first, then text,
// then calls of tools, the order in which Anthropic writes them.
func assistantBlocks(m *chatMessage, pointer string) ([]jsontext.Value, error) {
	if present(m.Audio) && !present(m.Content) {
		return nil, cannotSay(pointer+"/audio", "an answer in audio")
	}
	if present(m.Function) {
		return nil, cannotSay(pointer+"/function_call", "function_call; use tools")
	}
	out := thoughts(m.Thinking)
	content, err := contentBlocks(m.Content, pointer+"/content")
	if err != nil {
		return nil, err
	}
	if refusal := text(m.Refusal); refusal != "" && len(content) == 0 {
		content, err = contentBlocks(quoted(refusal), pointer+"/refusal")
		if err != nil {
			return nil, err
		}
	}
	out = append(out, content...)
	for i, call := range m.ToolCalls {
		b, err := toolUse(call, at(pointer+"/tool_calls", i))
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// thoughts are those blocks that Anthropic takes back: with a signature or
// sealed.
func thoughts(blocks []jsontext.Value) (out []jsontext.Value) {
	for _, v := range blocks {
		var b claudeBlock
		if decode(v, "", &b) != nil {
			continue
		}
		switch {
		case b.Type == "thinking" && b.Signature != "":
			v = signedThought(b.Thinking, b.Signature)
		case b.Type == "redacted_thinking" && b.Data != "":
			v = sealedThought(b.Data)
		default:
			continue
		}
		out = append(out, v)
	}
	return out
}

func signedThought(thinking, signature string) jsontext.Value {
	return jsontext.Value(`{"type":"thinking","thinking":` + string(quoted(thinking)) + `,"signature":` + string(quoted(signature)) + `}`)
}

func sealedThought(data string) jsontext.Value {
	return jsontext.Value(`{"type":"redacted_thinking","data":` + string(quoted(data)) + `}`)
}

// thoughtless tells whether the conversation stands amid the use of tools whose
// turn does not begin with a thought: Anthropic does not think there.
func (r *claudeRequest) thoughtless() bool {
	last := len(r.Messages) - 1
	if last < 1 || r.Messages[last].Role != "user" || !begins(r.Messages[last], "tool_result") {
		return false
	}
	return !begins(r.Messages[last-1], "thinking") && !begins(r.Messages[last-1], "redacted_thinking")
}

func begins(m claudeMessage, kind string) bool {
	return strings.HasPrefix(string(m.Content[0]), `{"type":"`+kind+`"`)
}
