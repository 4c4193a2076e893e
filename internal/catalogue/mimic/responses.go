package mimic

import "fmt"

// item is the one item of output: its status, and what it holds.
func (c Call) item(r Reply, status, content string) string {
	if c.Tool != "" {
		return fmt.Sprintf(`{"type":"function_call","id":%s,"call_id":%s,"name":%s,"arguments":%s,"status":%q}`, js("fc_"+r.ID), js("call_"+r.ID), js(c.Tool), js(content), status)
	}
	parts := ""
	if status != "in_progress" {
		parts = textPart(content)
	}
	return fmt.Sprintf(`{"type":"message","id":%s,"role":"assistant","status":%q,"content":[%s]}`, js("msg_"+r.ID), status, parts)
}

func textPart(text string) string {
	return `{"type":"output_text","text":` + js(text) + `,"annotations":[],"logprobs":[]}`
}

// object is the response itself.
func (c Call) object(r Reply, status, output, rest string) string {
	return fmt.Sprintf(`{"id":%s,"object":"response","created_at":%d,"status":%q,"model":%s,"output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"metadata":{}%s}`,
		js("resp_"+r.ID), r.At.Unix(), status, js(c.Model), output, rest)
}

// ended is the response as it is at its end.
func (c Call) ended(r Reply) (status, object string) {
	status, rest := "completed", `,"error":null,"incomplete_details":null`
	if r.Cut {
		status, rest = "incomplete", `,"error":null,"incomplete_details":{"reason":"max_output_tokens"}`
	}
	return status, c.object(r, status, c.item(r, status, r.text()), rest+stated(r.Usage))
}

func (c Call) response(r Reply) string {
	_, object := c.ended(r)
	return object
}

// event adds an event of a stream of responses, which are numbered.
func (s *stream) event(name, members string) {
	s.add(name, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, name, s.sequence, members))
	s.sequence++
}

func (s *stream) place() string { return `"output_index":0` }

func (s *stream) inItem() string {
	if s.Tool != "" {
		return `"item_id":` + js("fc_"+s.ID) + `,"output_index":0`
	}
	return `"item_id":` + js("msg_"+s.ID) + `,"output_index":0,"content_index":0`
}

func responseOpens(s *stream) {
	begun := `"response":` + s.object(s.Reply, "in_progress", "", `,"error":null,"incomplete_details":null,"usage":null`)
	s.event("response.created", begun)
	s.event("response.in_progress", begun)
	s.event("response.output_item.added", s.place()+`,"item":`+s.item(s.Reply, "in_progress", ""))
	if s.Tool == "" {
		s.event("response.content_part.added", s.inItem()+`,"part":`+textPart(""))
	}
	s.step()
}

func responseSays(s *stream, word string) {
	if s.Tool != "" {
		s.event("response.function_call_arguments.delta", s.inItem()+`,"delta":`+js(word))
		return
	}
	s.event("response.output_text.delta", s.inItem()+`,"delta":`+js(word)+`,"logprobs":[]`)
}

func responseFails(s *stream) {
	failure := fmt.Sprintf(`,"error":{"code":"server_error","message":%s},"incomplete_details":null,"usage":null`, js(s.Fails))
	s.event("response.failed", `"response":`+s.object(s.Reply, "failed", "", failure))
}

func responseCloses(s *stream) {
	if s.Tool != "" {
		s.event("response.function_call_arguments.done", s.inItem()+`,"arguments":`+js(s.text()))
	} else {
		s.event("response.output_text.done", s.inItem()+`,"text":`+js(s.text())+`,"logprobs":[]`)
		s.event("response.content_part.done", s.inItem()+`,"part":`+textPart(s.text()))
	}
	status, object := s.ended(s.Reply)
	s.event("response.output_item.done", s.place()+`,"item":`+s.item(s.Reply, status, s.text()))
	s.step()
	s.event("response."+status, `"response":`+object)
	s.last()
}
