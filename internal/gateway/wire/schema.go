package wire

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is what of a JSON schema decides whether OpenAI takes it as strict
// (https://platform.openai.com/docs/guides/structured-outputs): every object
// demands all its members and allows no other.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Additional jsontext.Value    `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Defs       map[string]schema `json:"$defs"`
}

// strict tells whether OpenAI takes a schema as strict. Anthropic's form also
// has members that may be missing: such a schema is followed as well as the
// model can.
func strict(v jsontext.Value) bool {
	var s schema
	return json.Unmarshal(v, &s, lenient) == nil && s.closed()
}

func (s *schema) closed() bool {
	if s.Properties != nil && string(s.Additional) != "false" {
		return false
	}
	for name, p := range s.Properties {
		if !slices.Contains(s.Required, name) || !p.closed() {
			return false
		}
	}
	for _, d := range s.Defs {
		if !d.closed() {
			return false
		}
	}
	for i := range s.AnyOf {
		if !s.AnyOf[i].closed() {
			return false
		}
	}
	return s.Items == nil || s.Items.closed()
}
