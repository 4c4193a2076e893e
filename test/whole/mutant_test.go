package whole

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// mutant is a body with one thing wrong, and the member that is to be named.
type mutant struct {
	what    string
	body    string
	pointer string
	deeper  bool // or one of its own members may be named
}

// edit is the one change of a body: what stands at a pointer is replaced, or
// removed, or the object there gets another member.
type edit struct {
	at       string
	replace  string
	remove   bool
	addition string
}

// render writes a JSON value with an edit.
func render(v any, at string, e edit) string {
	if at == e.at && e.replace != "" {
		return e.replace
	}
	switch t := v.(type) {
	case map[string]any:
		var parts []string
		for _, name := range sortedNames(t) {
			if p := at + "/" + name; p != e.at || !e.remove {
				parts = append(parts, fmt.Sprintf("%q:%s", name, render(t[name], p, e)))
			}
		}
		if at == e.at && e.addition != "" {
			parts = append(parts, e.addition)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for i, item := range t {
			parts = append(parts, render(item, fmt.Sprintf("%s/%d", at, i), e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func sortedNames[V any](o map[string]V) (names []string) {
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// mutants are every way in which a body can be wrong in one place, by its
// schema.
func (s spec) mutants(example any, x *schema) []mutant {
	m := mutator{spec: s, root: example}
	m.value(example, s.at(x), "")
	last := sortedNames(s.at(x).Properties)[0]
	m.add("more than a body may have", "/"+last, edit{at: "", addition: fmt.Sprintf("%q:%q", last, strings.Repeat("x", 1<<20))})
	return m.out
}

type mutator struct {
	spec
	root any
	out  []mutant
}

func (m *mutator) add(what, pointer string, e edit) {
	m.out = append(m.out, mutant{what: what + " at " + pointer, body: render(m.root, "", e), pointer: pointer})
}

func (m *mutator) value(v any, x *schema, at string) {
	switch t := v.(type) {
	case map[string]any:
		m.object(t, x, at)
	case []any:
		for i, item := range t {
			p := fmt.Sprintf("%s/%d", at, i)
			m.wrong(m.at(x.Items), p, func(raw string) edit { return edit{at: p, replace: raw} })
			m.value(item, m.at(x.Items), p)
		}
	}
}

func (m *mutator) object(o map[string]any, x *schema, at string) {
	m.add("unknown member", at+"/no_such_member", edit{at: at, addition: `"no_such_member":1`})
	for _, name := range sortedNames(o) {
		p, same := at+"/"+name, render(o[name], at+"/"+name, edit{at: "none"})
		m.add("duplicate member", p, edit{at: at, addition: fmt.Sprintf("%q:%s", name, same)})
		upper := strings.ToUpper(name)
		if x.Additional == nil { // the names of a map are the caller's, and their case counts
			m.add("member in another case", at+"/"+upper, edit{at: at, addition: fmt.Sprintf("%q:%s", upper, same)})
		}
		if slices.Contains(x.Required, name) {
			m.add("missing member", p, edit{at: p, remove: true})
			m.add("null member", p, edit{at: p, replace: "null"})
		}
		if property := x.Properties[name]; property != nil {
			m.value(o[name], m.at(property), p)
		}
	}
	for _, name := range sortedNames(x.Properties) {
		property := x.Properties[name]
		p := at + "/" + name
		put := func(raw string) edit { return edit{at: p, replace: raw} }
		if _, there := o[name]; !there {
			put = func(raw string) edit { return edit{at: at, addition: fmt.Sprintf("%q:%s", name, raw)} }
		}
		m.wrong(m.at(property), p, put)
	}
}

// wrong makes mutants of the values that a schema cannot allow.
func (m *mutator) wrong(x *schema, at string, put func(raw string) edit) {
	values := map[string][]string{
		"string":  {`7`, `true`, `[]`, `{}`},
		"integer": {`"5"`, `true`, `[]`, `{}`, `1.5`, `1e2`, `9223372036854775808`, `-9223372036854775809`, "1" + strings.Repeat("0", 400)},
		"boolean": {`"true"`, `1`, `[]`, `{}`},
		"array":   {`"x"`, `7`, `true`, `{}`},
		"object":  {`"x"`, `7`, `true`, `[]`},
	}
	for kind, list := range values {
		if !x.is(kind) {
			continue
		}
		for _, raw := range list {
			m.add("wrong value "+brief(raw), at, put(raw))
		}
	}
	switch {
	case x.is("string"):
		m.add("huge string", at, put(`"`+strings.Repeat("x", 100_000)+`"`))
		m.add("text with a control character", at, put(`"a\u0000b"`))
	case x.is("integer") && x.Minimum != nil && *x.Minimum >= 0:
		m.add("negative number", at, put(`-1`))
	case x.is("array"):
		m.add("list with null", at+"/0", put(`[null]`))
		m.out[len(m.out)-1].deeper = true
	case x.is("object") && x.Additional != nil:
		m.wrong(m.at(x.Additional), at+"/x", func(raw string) edit { return put(`{"x":` + raw + `}`) })
	}
}

func brief(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}
