package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// noParameters is the schema of a tool that takes none.
var noParameters = jsontext.Value(`{"type":"object","properties":{}}`)

func (r *claudeRequest) readTools(body *jsonbody.Object) error {
	var list []chatTool
	if err := decode(body.Get("tools"), "/tools", &list); err != nil {
		return err
	}
	for i := range list {
		t := &list[i]
		if t.Type != "function" {
			return cannotSay(at("/tools", i)+"/type", "a tool of the type "+strconv.Quote(t.Type))
		}
		schema, err := inputSchema(t.Function.Parameters, at("/tools", i)+"/function/parameters")
		if err != nil {
			return err
		}
		cache := orNil(t.CacheControl)
		if cache == nil {
			cache = orNil(t.Function.CacheControl)
		}
		r.Tools = append(r.Tools, claudeTool{Name: t.Function.Name, Description: t.Function.Description, InputSchema: schema, Strict: t.Function.Strict && !r.generation.before(firstStrict), CacheControl: cache})
	}
	if len(r.Tools) == 0 {
		return nil // Anthropic refuses a choice among none
	}
	return r.readToolChoice(body)
}

// inputSchema is a tool's schema with the type that Anthropic demands.
func inputSchema(parameters jsontext.Value, pointer string) (jsontext.Value, error) {
	if !present(parameters) {
		return noParameters, nil
	}
	if parameters.Kind() != '{' {
		return nil, jsonbody.Field(pointer, "wrong_type", "A tool's parameters are a JSON schema.")
	}
	o, err := jsonbody.ParseObject(parameters)
	if err != nil {
		return nil, err
	}
	switch {
	case len(o.Names()) == 0:
		return noParameters, nil
	case o.Get("type") == nil:
		o.Set("type", jsontext.Value(`"object"`))
		return o.Bytes(), nil
	}
	return parameters, nil
}

func (r *claudeRequest) readToolChoice(body *jsonbody.Object) (err error) {
	if r.ToolChoice, err = claudeChoice(body.Get("tool_choice")); err != nil {
		return err
	}
	parallel := true
	if err := decode(body.Get("parallel_tool_calls"), "/parallel_tool_calls", &parallel); err != nil {
		return err
	}
	if parallel || r.ToolChoice != nil && r.ToolChoice.Type == "none" {
		return nil
	}
	if r.ToolChoice == nil {
		r.ToolChoice = &claudeToolChoice{Type: "auto"}
	}
	r.ToolChoice.DisableParallel = true
	return nil
}

func claudeChoice(v jsontext.Value) (*claudeToolChoice, error) {
	if !present(v) {
		return nil, nil //nolint:nilnil // absent is no error
	}
	if v.Kind() == '"' {
		kind := map[string]string{"auto": "auto", "none": "none", "required": "any"}[text(v)]
		if kind == "" {
			return nil, cannotSay("/tool_choice", "the tool choice "+string(v))
		}
		return &claudeToolChoice{Type: kind}, nil
	}
	var one struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	if err := decode(v, "/tool_choice", &one); err != nil {
		return nil, err
	}
	if one.Type != "function" {
		return nil, cannotSay("/tool_choice/type", "a tool choice of the type "+strconv.Quote(one.Type))
	}
	return &claudeToolChoice{Type: "tool", Name: one.Function.Name}, nil
}

// toolUse is a call of a tool in an answer of before.
func toolUse(call chatToolCall, pointer string) (jsontext.Value, error) {
	if call.Type != "function" && call.Type != "" {
		return nil, cannotSay(pointer+"/type", "a call of a tool of the type "+strconv.Quote(call.Type))
	}
	return encodeCall(call)
}

func encodeCall(call chatToolCall) (jsontext.Value, error) {
	input, err := object(string(call.Function.Arguments))
	if err != nil {
		return nil, err
	}
	return encode(claudeBlock{Type: "tool_use", ID: toolID(call.ID), Name: call.Function.Name, Input: input})
}

// toolID writes an id with the characters that Anthropic takes: letters,
// digits, _ and -.
func toolID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// toolResult is what a tool gave, images included.
func toolResult(m *chatMessage, pointer string) (jsontext.Value, error) {
	content, err := contentBlocks(m.Content, pointer+"/content")
	if err != nil {
		return nil, err
	}
	b := claudeBlock{Type: "tool_result", ToolUseID: toolID(m.ToolCallID)}
	if len(content) > 0 {
		if b.Content, err = encode(content); err != nil {
			return nil, err
		}
	}
	return encode(b)
}
