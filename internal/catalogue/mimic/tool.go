package mimic

import (
	"encoding/json"
	"slices"
	"strings"
)

// tool is a tool as each form offers it: chat nests what the others say at once.
type tool struct {
	Name        string          `json:"name"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
	Function    *tool           `json:"function"`
}

func (t tool) itself() tool {
	if t.Function != nil {
		return *t.Function
	}
	return t
}

// demand finds the tool that the call demands: one that it names, or the first
// where it says that some tool has to be called.
func (c *Call) demand(wanted json.RawMessage) {
	var word string
	var choice struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function tool   `json:"function"`
	}
	if json.Unmarshal(wanted, &word) != nil {
		_ = json.Unmarshal(wanted, &choice) // absent: nothing is demanded
	}
	switch named := choice.Name + choice.Function.Name; {
	case named != "":
		*c = c.Calling(named)
	case len(c.tools) > 0 && (word == "required" || choice.Type == "any"):
		*c = c.Calling(c.tools[0].Name)
	}
}

// Calling is the call as if it demanded that tool. Its arguments are examples that
// fit its schema.
func (c Call) Calling(name string) Call {
	t := tool{Name: name}
	if i := slices.IndexFunc(c.tools, func(t tool) bool { return t.Name == name }); i >= 0 {
		t = c.tools[i]
	}
	schema := t.Parameters
	if schema == nil {
		schema = t.InputSchema
	}
	var object struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &object) // without a schema there are no arguments
	var members []string
	for _, name := range object.Required {
		members = append(members, js(name)+":"+example(object.Properties[name].Type))
	}
	c.Tool, c.arguments = name, "{"+strings.Join(members, ",")+"}"
	return c
}

func example(kind string) string {
	switch kind {
	case "integer", "number":
		return "1"
	case "boolean":
		return "true"
	case "array":
		return "[]"
	case "object":
		return "{}"
	}
	return `"weir"`
}

// pieces are the arguments of the tool, in the pieces of a stream.
func (c *Call) pieces() []string {
	half := len(c.arguments) / 2
	return []string{c.arguments[:half], c.arguments[half:]}
}
