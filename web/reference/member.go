package reference

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// depth is how far members are spread out.
const depth = 5

// members are those of an object, or of the objects in a list, each followed
// by its own. Required ones come first, the rest by name.
func (d *document) members(s schema) []Member { return d.spread(s, "", depth) }

func (d *document) spread(s schema, prefix string, left int) []Member {
	s = d.resolve(s)
	if left == 0 {
		return nil
	}
	if s.Items != nil {
		return d.spread(*s.Items, prefix+"[]", left-1)
	}
	var out []Member
	for _, name := range ordered(s) {
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		property := s.Properties[name]
		out = append(out, d.member(path, property, slices.Contains(s.Required, name)))
		out = append(out, d.spread(property, path, left-1)...)
	}
	return out
}

func ordered(s schema) []string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(optional(s, a), optional(s, b)), strings.Compare(a, b))
	})
	return names
}

// optional is 0 for a required member, which comes first.
func optional(s schema, name string) int {
	if slices.Contains(s.Required, name) {
		return 0
	}
	return 1
}

func (d *document) member(name string, s schema, required bool) Member {
	s = d.resolve(s)
	m := Member{Name: name, Type: d.typeOf(s), Range: rangeOf(s), About: s.Description, Required: required, Default: text(s.Default)}
	values := s.Enum
	if len(values) == 0 && s.Items != nil {
		values = d.resolve(*s.Items).Enum
	}
	for _, v := range values {
		m.Enum = append(m.Enum, text(v))
	}
	if len(s.Examples) > 0 {
		m.Example = text(s.Examples[0])
	}
	return m
}

// rangeOf says which numbers are taken: "0 or more", "1 to 3600".
func rangeOf(s schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return s.Minimum.String() + " to " + s.Maximum.String()
	case s.Minimum != nil:
		return s.Minimum.String() + " or more"
	case s.Maximum != nil:
		return s.Maximum.String() + " at most"
	}
	return ""
}

// typeOf names a type in words: "string", "list of integer", "string or null".
func (d *document) typeOf(s schema) string {
	kinds := slices.Clone(s.Type)
	for i, kind := range kinds {
		switch {
		case kind == "array" && s.Items != nil:
			kinds[i] = "list of " + cmp.Or(d.typeOf(d.resolve(*s.Items)), "anything")
		case kind == "array":
			kinds[i] = "list"
		case kind == "string" && s.Format == "date-time":
			kinds[i] = "time"
		}
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(isNull(a), isNull(b)) })
	return strings.Join(kinds, " or ")
}

func isNull(kind string) int {
	if kind == "null" {
		return 1
	}
	return 0
}

// text writes a JSON value as one would say it: a string without its quotes.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
