package wire

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// claudeBlocks are the blocks of a content, which may be a bare text.
func claudeBlocks(v jsontext.Value, pointer string) (blocks []claudeBlock, err error) {
	if present(v) && v.Kind() == '"' {
		return []claudeBlock{{Type: "text", Text: text(v)}}, nil
	}
	return blocks, decode(v, pointer, &blocks)
}

func (r *chatRequest) readSystem(body *jsonbody.Object, o ToChat) error {
	blocks, err := claudeBlocks(body.Get("system"), "/system")
	if err != nil {
		return err
	}
	return r.systemTurn(blocks, "/system", o)
}

// systemTurn is the system text, or words of it amid the conversation, which
// newer models of Anthropic's take and OpenAI's form always did.
func (r *chatRequest) systemTurn(blocks []claudeBlock, pointer string, o ToChat) error {
	parts, err := chatContent(blocks, pointer, o)
	if err != nil || len(parts) == 0 {
		return err
	}
	return r.say("system", parts)
}

func (r *chatRequest) readTurns(body *jsonbody.Object, o ToChat) error {
	var list []struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
	}
	if err := decode(body.Get("messages"), "/messages", &list); err != nil {
		return err
	}
	for i, m := range list {
		pointer := at("/messages", i)
		blocks, err := claudeBlocks(m.Content, pointer+"/content")
		if err != nil {
			return err
		}
		switch m.Role {
		case "user":
			err = r.userTurn(blocks, pointer+"/content", o)
		case "assistant":
			err = r.assistantTurn(blocks, pointer+"/content", o)
		case "system":
			err = r.systemTurn(blocks, pointer+"/content", o)
		default:
			err = cannotSay(pointer+"/role", "the role "+strconv.Quote(m.Role))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say adds a message of parts; a lone text is a bare one, which every provider
// reads.
func (r *chatRequest) say(role string, parts []chatPart) error {
	m := chatMessage{Role: role}
	if len(parts) == 1 && parts[0].Type == "text" && parts[0].CacheControl == nil {
		m.Content = quoted(parts[0].Text)
	} else {
		var err error
		if m.Content, err = encode(parts); err != nil {
			return err
		}
	}
	r.Messages = append(r.Messages, m)
	return nil
}

// userTurn says results of tools first, each in a message of its own, then the
// rest. A tool's message holds text alone: its images go to the user's.
func (r *chatRequest) userTurn(blocks []claudeBlock, pointer string, o ToChat) error {
	var rest []chatPart
	for i := range blocks {
		b, here := &blocks[i], at(pointer, i)
		if b.Type != "tool_result" {
			p, err := part(b, here, o)
			if err != nil {
				return err
			}
			rest = append(rest, p...)
			continue
		}
		images, err := r.result(b, here, o)
		if err != nil {
			return err
		}
		rest = append(rest, images...)
	}
	if len(rest) == 0 {
		return nil
	}
	return r.say("user", rest)
}

// result adds a tool's message and gives back what it cannot hold. OpenAI's
// form has no word for a failed tool but the text.
func (r *chatRequest) result(b *claudeBlock, pointer string, o ToChat) (others []chatPart, err error) {
	inner, err := claudeBlocks(b.Content, pointer+"/content")
	if err != nil {
		return nil, err
	}
	parts, err := chatContent(inner, pointer+"/content", o)
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			said.WriteString(p.Text)
		} else {
			others = append(others, p)
		}
	}
	out := said.String()
	if b.IsError && !strings.HasPrefix(strings.ToLower(out), "error") {
		out = "Error: " + out
	}
	r.Messages = append(r.Messages, chatMessage{Role: "tool", ToolCallID: b.ToolUseID, Content: quoted(out)})
	return others, nil
}

// chatContent says blocks as parts.
func chatContent(blocks []claudeBlock, pointer string, o ToChat) (out []chatPart, err error) {
	for i := range blocks {
		p, err := part(&blocks[i], at(pointer, i), o)
		if err != nil {
			return nil, err
		}
		out = append(out, p...)
	}
	return out, nil
}

// part is a block as parts: a document may hold several.
func part(b *claudeBlock, pointer string, o ToChat) (out []chatPart, err error) {
	p := chatPart{Type: "text"}
	if o.CacheControl {
		p.CacheControl = orNil(b.CacheControl)
	}
	switch {
	case b.Type == "text":
		p.Text = b.Text
	case b.Type == "image" && b.Source != nil && b.Source.Type == "base64":
		p.Type, p.ImageURL = "image_url", &chatImage{toDataURL(b.Source.MediaType, b.Source.Data)}
	case b.Type == "image" && b.Source != nil && b.Source.Type == "url":
		p.Type, p.ImageURL = "image_url", &chatImage{b.Source.URL}
	case b.Type == "document" && b.Source != nil:
		return documentParts(b, p, pointer, o)
	case b.Type == "image":
		return nil, cannotSay(pointer+"/source/type", "an image that was uploaded elsewhere")
	default:
		return nil, cannotSay(pointer+"/type", "a block of the type "+strconv.Quote(b.Type))
	}
	return []chatPart{p}, nil
}

// documentParts says a document as a file, or as the text that it is.
func documentParts(b *claudeBlock, p chatPart, pointer string, o ToChat) ([]chatPart, error) {
	switch b.Source.Type {
	case "base64":
		name := b.Title
		if name == "" {
			name = "document.pdf"
		}
		p.Type, p.File = "file", &chatFile{Data: toDataURL(b.Source.MediaType, b.Source.Data), Name: name}
	case "text":
		if b.Title != "" {
			p.Type, p.File = "file", &chatFile{Data: toDataURL("text/plain", base64.StdEncoding.EncodeToString([]byte(b.Source.Data))), Name: b.Title}
			break
		}
		p.Text = b.Source.Data
	case "content":
		inner, err := claudeBlocks(b.Source.Content, pointer+"/source/content")
		if err != nil {
			return nil, err
		}
		return chatContent(inner, pointer+"/source/content", o)
	default:
		return nil, cannotSay(pointer+"/source/type", "a document of the source "+strconv.Quote(b.Source.Type))
	}
	return []chatPart{p}, nil
}

// assistantTurn says an answer of before: its texts in one, then its calls.
// Thoughts are said to those who take them back, and dropped otherwise.
func (r *chatRequest) assistantTurn(blocks []claudeBlock, pointer string, o ToChat) error {
	m := chatMessage{Role: "assistant"}
	var said, thought strings.Builder
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case "text":
			said.WriteString(b.Text)
		case "thinking":
			thought.WriteString(b.Thinking)
		case "redacted_thinking":
		case "tool_use":
			input := orNil(b.Input)
			if input == nil {
				input = jsontext.Value("{}")
			}
			m.ToolCalls = append(m.ToolCalls, chatToolCall{ID: b.ID, Type: "function", Function: chatFunction{b.Name, loose(input)}})
		default:
			return cannotSay(at(pointer, i)+"/type", "a block of the type "+strconv.Quote(b.Type))
		}
	}
	if o.Reasoning {
		m.Reasoning = thought.String()
	}
	m.Content = quoted(said.String())
	if said.Len() == 0 {
		if len(m.ToolCalls) == 0 {
			return nil
		}
		m.Content = jsontext.Value("null")
	}
	r.Messages = append(r.Messages, m)
	return nil
}
