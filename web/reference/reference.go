// Package reference turns an OpenAPI 3.1 document into what a reader needs:
// operations in groups, each with its members spread out in one list.
package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Reference is the whole of an API.
type Reference struct {
	Title, About string
	Groups       []Group
}

// Group is what is done with one kind of thing.
type Group struct {
	Name, Slug string
	Operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string
	Slug         string // its anchor
	Summary      string
	About        string // `backticks` set code
	Parameters   []Member
	Body         []Member
	Example      string // of the body, as JSON; "" none
	Answers      []Answer
}

// Answer is what comes back with a status, or "default" for all others.
type Answer struct {
	Status, About, Media string
	Members              []Member
}

// Member is a parameter, or a member of a body; nested ones have their whole
// path as name: "limits[].amount".
type Member struct {
	Name     string
	In       string // of a parameter: path, query, header
	Type     string // in words: "list of string"
	Range    string // of a number, in words
	About    string
	Enum     []string
	Example  string
	Default  string
	Required bool
}

// Parse reads a document. Operations are in the order of their groups' names,
// then of paths, then of methods.
func Parse(raw []byte) (Reference, error) {
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Reference{}, err
	}
	ref := Reference{Title: doc.Info.Title, About: doc.Info.Description}
	groups := map[string]*Group{}
	for path, item := range doc.Paths {
		for method, op := range item.operations() {
			name := op.group(path)
			if groups[name] == nil {
				groups[name] = &Group{Name: name, Slug: slug(name)}
			}
			groups[name].Operations = append(groups[name].Operations, doc.operation(method, path, op, item.Parameters))
		}
	}
	for _, g := range groups {
		slices.SortFunc(g.Operations, func(a, b Operation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(rank(a.Method), rank(b.Method)))
		})
		ref.Groups = append(ref.Groups, *g)
	}
	slices.SortFunc(ref.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return ref, nil
}

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

func rank(method string) int { return slices.Index(methods, method) }

// slug makes an anchor: letters and digits, everything else one hyphen.
func slug(s string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	return b.String()
}

func (d *document) operation(method, path string, op operation, shared []parameter) Operation {
	out := Operation{Method: method, Path: path, Slug: slug(method + " " + path), Summary: op.Summary, About: op.Description}
	for _, p := range slices.Concat(shared, op.Parameters) {
		m := d.member(p.Name, p.Schema, p.Required)
		m.In, m.About = p.In, cmp.Or(p.Description, m.About)
		out.Parameters = append(out.Parameters, m)
	}
	if op.RequestBody != nil {
		_, content := first(op.RequestBody.Content)
		out.Body = d.members(content.Schema)
		out.Example = indented(content.Example)
	}
	for status, r := range op.Responses {
		media, content := first(r.Content)
		out.Answers = append(out.Answers, Answer{Status: status, About: r.Description, Media: media, Members: d.members(content.Schema)})
	}
	slices.SortFunc(out.Answers, func(a, b Answer) int { return strings.Compare(a.Status, b.Status) })
	return out
}

// first is the media type that comes first by name; there is hardly ever
// another.
func first(content map[string]media) (string, media) {
	name := ""
	for n := range content {
		if name == "" || n < name {
			name = n
		}
	}
	return name, content[name]
}

// oneLine is how long an example may be that stays on one line.
const oneLine = 48

// indented is raw for reading; "" where there is none.
func indented(raw json.RawMessage) string {
	indent := "  "
	if len(raw) <= oneLine {
		indent = ""
	}
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", indent) != nil {
		return ""
	}
	if len(raw) > oneLine {
		return b.String()
	}
	return strings.NewReplacer(",\n", ", ", "\n", "").Replace(b.String()) // no string holds a bare line end
}
