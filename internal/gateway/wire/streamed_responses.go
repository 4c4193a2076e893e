package wire

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responseEvents are those of a response of OpenAI's
// (https://platform.openai.com/docs/api-reference/responses-streaming).
func responseEvents(body []byte) ([]byte, error) {
	var r members
	var items []members
	if err := json.Unmarshal(body, &r, lenient); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(r["output"], &items, lenient); err != nil {
		return nil, err
	}
	begun, err := r.with("output", jsontext.Value("[]")).with("status", quoted("in_progress")).with("usage", jsontext.Value("null")).encode()
	if err != nil {
		return nil, err
	}
	w := &responseWriter{}
	w.say("response.created", members{"response": begun})
	w.say("response.in_progress", members{"response": begun})
	for i, item := range items {
		w.item(i, item)
	}
	last := "response.completed"
	if text(r["status"]) == "incomplete" {
		last = "response.incomplete"
	}
	w.say(last, members{"response": slices.Clone(body)})
	return w.out, w.err
}

// responseWriter writes events of a response, each with its number.
type responseWriter struct {
	out    []byte
	number int
	err    error
}

func (w *responseWriter) say(name string, v members) {
	if w.err != nil {
		return
	}
	n, err := encode(w.number)
	if err != nil {
		w.err = err
		return
	}
	w.number++
	w.out = saying(w.out, name, v.with("type", quoted(name)).with("sequence_number", n))
}

func (w *responseWriter) value(m members) jsontext.Value {
	b, err := m.encode()
	if err != nil {
		w.err = err
	}
	return b
}

// item says one item of the output: the texts of a message and the arguments of a
// call come in one piece each.
func (w *responseWriter) item(i int, item members) {
	at := members{}
	at["output_index"], w.err = encode(i)
	begun := item
	switch text(item["type"]) {
	case "message":
		begun = item.with("content", jsontext.Value("[]")).with("status", quoted("in_progress"))
	case "function_call":
		begun = item.with("arguments", quoted("")).with("status", quoted("in_progress"))
	}
	w.say("response.output_item.added", at.with("item", w.value(begun)))
	here := at.with("item_id", orNull(item["id"]))
	switch text(item["type"]) {
	case "message":
		w.parts(here, item["content"])
	case "function_call":
		w.say("response.function_call_arguments.delta", here.with("delta", orNull(item["arguments"])))
		w.say("response.function_call_arguments.done", here.with("arguments", orNull(item["arguments"])))
	}
	w.say("response.output_item.done", at.with("item", w.value(item)))
}

func (w *responseWriter) parts(here members, content jsontext.Value) {
	var parts []members
	if err := json.Unmarshal(content, &parts, lenient); err != nil {
		w.err = err
		return
	}
	for i, p := range parts {
		n, err := encode(i)
		if err != nil {
			w.err = err
			return
		}
		here := here.with("content_index", n)
		kind, name := text(p["type"]), "text"
		if kind == "refusal" {
			name = "refusal"
		}
		w.say("response.content_part.added", here.with("part", w.value(p.with(name, quoted("")))))
		if kind == "output_text" || kind == "refusal" {
			w.say("response."+kind+".delta", here.with("delta", orNull(p[name])))
			w.say("response."+kind+".done", here.with(name, orNull(p[name])))
		}
		w.say("response.content_part.done", here.with("part", w.value(p)))
	}
}
