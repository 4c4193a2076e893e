package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// Streamed says a whole answer of Chat, Completions, Messages or Responses as the
// stream that its client asked for, from its
// first event to its last. t is what the call was settled with, which is stated
// where the answer states nothing. A body that is no such answer is Upstream,
// upstream_invalid_response.
func Streamed(f Form, body []byte, o StreamOptions, t limits.Tokens) (out []byte, err error) {
	switch f {
	case Messages:
		out, err = messageEvents(body)
	case Responses:
		out, err = responseEvents(body)
	default:
		out, err = chunks(body, f == Chat, o.WantUsage, t)
	}
	if err != nil {
		return nil, notThatAnswer(err)
	}
	return out, nil
}

// members are those of an object whose names are not all known.
type members map[string]jsontext.Value

func (m members) with(name string, value jsontext.Value) members {
	out := members{}
	for k, v := range m {
		out[k] = v
	}
	out[name] = value
	return out
}

func (m members) encode() (jsontext.Value, error) {
	return json.Marshal(m, lenient, json.Deterministic(true))
}

// saying is event for members, which stand in one order.
func saying(out []byte, name string, m members) []byte {
	b, err := m.encode()
	if err != nil {
		return out // nothing that comes of a valid answer
	}
	return event(out, name, b)
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// chunks are those of a chat completion or a completion: each choice in one, and
// of chat why it ended in another.
func chunks(body []byte, chat, wantUsage bool, t limits.Tokens) (out []byte, err error) {
	var answer members
	var choices []members
	if err := json.Unmarshal(body, &answer, lenient); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer["choices"], &choices, lenient); err != nil {
		return nil, err
	}
	usage := orNil(answer["usage"])
	delete(answer, "usage")
	if wantUsage {
		answer["usage"] = jsontext.Value("null")
	}
	if chat {
		answer["object"] = quoted("chat.completion.chunk")
		if choices, err = asDeltas(choices); err != nil {
			return nil, err
		}
	}
	say := func(a members, choices ...members) {
		var list, b jsontext.Value
		if list, err = json.Marshal(choices, lenient, json.Deterministic(true)); err == nil {
			b, err = a.with("choices", list).encode()
			out = append(append(append(out, "data: "...), b...), "\n\n"...)
		}
	}
	for _, c := range choices {
		if say(answer, c); err != nil {
			return nil, err
		}
	}
	if wantUsage {
		if usage == nil {
			if usage, err = encode(toChatFigures(t)); err != nil {
				return nil, err
			}
		}
		if say(answer.with("usage", usage), []members{}...); err != nil {
			return nil, err
		}
	}
	return append(out, "data: [DONE]\n\n"...), nil
}

// asDeltas are whole choices of chat as pieces of them.
func asDeltas(choices []members) (out []members, err error) {
	for _, c := range choices {
		var m members
		if err := json.Unmarshal(c["message"], &m, lenient); err != nil {
			return nil, err
		}
		if m, err = numbered(m, "tool_calls"); err != nil {
			return nil, err
		}
		if m, err = numbered(m, "thinking_blocks"); err != nil {
			return nil, err
		}
		delta, err := m.encode()
		if err != nil {
			return nil, err
		}
		said := c.with("delta", delta).with("finish_reason", jsontext.Value("null"))
		delete(said, "message")
		end := members{"index": orNull(c["index"]), "delta": jsontext.Value("{}"), "finish_reason": orNull(c["finish_reason"])}
		out = append(out, said, end)
	}
	return out, nil
}

// numbered gives each of a list its position, by which SDKs put pieces together.
func numbered(m members, name string) (members, error) {
	var list []members
	if !present(m[name]) {
		return m, nil
	}
	if err := json.Unmarshal(m[name], &list, lenient); err != nil {
		return nil, err
	}
	for i := range list {
		n, err := encode(i)
		if err != nil {
			return nil, err
		}
		list[i]["index"] = n
	}
	b, err := json.Marshal(list, lenient, json.Deterministic(true))
	return m.with(name, b), err
}
