package mimic

import (
	"encoding/json"
	"fmt"
)

// reason is Anthropic's word for why an answer ended.
func (c Call) reason(r Reply) string {
	switch {
	case c.Tool != "":
		return "tool_use"
	case r.Cut:
		return "max_tokens"
	}
	return "end_turn"
}

func (c Call) message(r Reply) string {
	content := `{"type":"text","text":` + js(r.text()) + `}`
	if c.Tool != "" {
		content = fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, js("toolu_"+r.ID), js(c.Tool), r.text())
	}
	return fmt.Sprintf(`{"id":%s,"type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%q,"stop_sequence":null%s}`,
		js("msg_"+r.ID), js(c.Model), content, c.reason(r), stated(r.Usage))
}

func messageOpens(s *stream) {
	s.add("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null%s}}`,
		js("msg_"+s.ID), js(s.Model), stated(begun(s.Usage))))
	block := `{"type":"text","text":""}`
	if s.Tool != "" {
		block = fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, js("toolu_"+s.ID), js(s.Tool))
	}
	s.add("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
	s.add("ping", `{"type":"ping"}`)
	s.step()
}

// begun is a usage as it stands when the first token has come.
func begun(usage string) string {
	var u map[string]json.RawMessage
	if json.Unmarshal([]byte(usage), &u) != nil || u == nil {
		return usage
	}
	var output int
	if json.Unmarshal(u["output_tokens"], &output) == nil && output > 1 {
		u["output_tokens"] = json.RawMessage("1")
	}
	return js(u)
}

func messageSays(s *stream, word string) {
	delta := `{"type":"text_delta","text":` + js(word) + `}`
	if s.Tool != "" {
		delta = `{"type":"input_json_delta","partial_json":` + js(word) + `}`
	}
	s.add("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
}

func messageFails(s *stream) {
	s.add("error", fmt.Sprintf(`{"type":"error","error":{"type":"overloaded_error","message":%s}}`, js(s.Fails)))
}

func messageCloses(s *stream) {
	s.add("content_block_stop", `{"type":"content_block_stop","index":0}`)
	s.add("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null}%s}`, s.reason(s.Reply), stated(s.Usage)))
	s.step()
	s.add("message_stop", `{"type":"message_stop"}`)
	s.last()
}
