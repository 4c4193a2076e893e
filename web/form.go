package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/web/ui"
)

// form is what was typed, and what is wrong with it. A field's name is the
// pointer that a fault gives it, with points for strokes: "limits.0.amount".
type form struct {
	url.Values
	Wrong []ui.Wrong
}

func typed(c echo.Context) (form, error) {
	if err := c.Request().ParseForm(); err != nil {
		return form{}, fault.New(fault.Invalid, "form_unreadable", "The form could not be read: it is too large, or arrived cut off. Nothing was changed.").Because(err)
	}
	return form{Values: c.Request().PostForm}, nil
}

// refuse takes what a service refused into the form, to be shown at its fields,
// and returns the status to answer with. What no field can mend comes back as
// the error.
func (f *form) refuse(err error) (int, error) {
	e := fault.Of(err)
	switch e.Kind {
	case fault.Invalid, fault.Refused, fault.Conflict:
	default:
		return 0, err
	}
	for _, x := range e.Fields {
		f.wrong(fieldName(x.Pointer), x.Message)
	}
	if len(e.Fields) == 0 {
		f.wrong("", e.Message)
	}
	if e.Kind == fault.Invalid {
		return http.StatusBadRequest, nil
	}
	return statuses[e.Kind], nil
}

func (f *form) wrong(name, message string) {
	f.Wrong = append(f.Wrong, ui.Wrong{Name: name, Message: message})
}

// fieldName is the field that a pointer names. Members of a list that is typed
// as one text belong to that text.
func fieldName(pointer string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	for _, text := range []string{"models.", "scopes.", "ip_allow.", "provider_keys.", "types.", "emails."} {
		if strings.HasPrefix(name, text) {
			return strings.TrimSuffix(text, ".")
		}
	}
	if list, _, found := strings.Cut(name, ".models."); found {
		return list + ".models"
	}
	return name
}

// Error is the first thing that is wrong with a field, "" where it is right.
func (f form) Error(name string) string {
	for _, w := range f.Wrong {
		if w.Name == name {
			return w.Message
		}
	}
	return ""
}

// input is a field with what was typed into it.
func (f form) input(name, label string) ui.Input {
	return ui.Input{Name: name, Label: label, Value: f.Get(name), Error: f.Error(name)}
}

// picked is whether a value of a group of boxes is ticked.
func (f form) picked(name, value string) bool {
	for _, v := range f.Values[name] {
		if v == value {
			return true
		}
	}
	return false
}

// words splits a list that was typed, by commas, spaces or lines; nil where
// nothing was.
func (f form) words(name string) []string {
	list := strings.FieldsFunc(f.Get(name), func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' || r == '\t' || r == ';' })
	if len(list) == 0 {
		return nil
	}
	return list
}

// partial tells whether htmx asks, for a part of a page.
func partial(c echo.Context) bool { return c.Request().Header.Get("HX-Request") == "true" }

// firstOf is the first thing that a refusal says.
func firstOf(err error) string {
	e := fault.Of(err)
	if len(e.Fields) > 0 {
		return e.Fields[0].Message
	}
	return e.Message
}
