package ui

import (
	"strings"

	"github.com/a-h/templ"
)

// Input is a field of a form. Its name is also its place in what the form is
// about: "limits.0.amount".
type Input struct {
	Name, Label, Value string
	Hint               string
	Error              string // in plain words; "" it is right
	Optional           bool
	Type               string // of the input element; "" is text
	Autocomplete       string // "" is off
	Placeholder        string
	InputMode          string
	Class              string // beside "in"
	Autofocus          bool
	Options            []Option // of Select, Radios and Checks
	Label2             string   // says more to a screen reader where the label is not shown
	List               string   // the id of a list of what is known
}

// Option is one of several values.
type Option struct {
	Value, Label, Hint string
	Chosen             bool
	Whole              bool // of boxes: the row is its own
}

// Wrong is what is wrong with a form: the field, "" where it is none, and words.
type Wrong struct{ Name, Message string }

// FieldID is the id of the element that a field is typed into.
func FieldID(name string) string { return "f-" + strings.ReplaceAll(name, ".", "-") }

func (f Input) id() string { return FieldID(f.Name) }

func (f Input) kind() string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

func (f Input) autocomplete() string {
	if f.Autocomplete == "" {
		return "off"
	}
	return f.Autocomplete
}

// describedBy are the ids of what stands below the field.
func (f Input) describedBy() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.id()+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, f.id()+"-hint")
	}
	return strings.Join(ids, " ")
}

func (f Input) attributes() templ.Attributes {
	a := templ.Attributes{}
	if d := f.describedBy(); d != "" {
		a["aria-describedby"] = d
	}
	if f.Error != "" {
		a["aria-invalid"] = "true"
	}
	if f.Placeholder != "" {
		a["placeholder"] = f.Placeholder
	}
	if f.InputMode != "" {
		a["inputmode"] = f.InputMode
	}
	if f.List != "" {
		a["list"] = f.List
	}
	if f.Autofocus {
		a["autofocus"] = true
	}
	return a
}

// Choose marks the option of a value as chosen.
func Choose(value string, options ...Option) []Option {
	for i := range options {
		options[i].Chosen = options[i].Value == value
	}
	return options
}
