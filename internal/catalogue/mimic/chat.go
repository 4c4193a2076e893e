package mimic

import "fmt"

// finish is OpenAI's word for why an answer ended.
func (c Call) finish(r Reply) string {
	switch {
	case c.Tool != "":
		return "tool_calls"
	case r.Cut:
		return "length"
	}
	return "stop"
}

// stated is a usage as the last member of an object.
func stated(usage string) string {
	if usage == "" {
		return ""
	}
	return `,"usage":` + usage
}

func (c Call) chat(r Reply) string {
	message := `"content":` + js(r.text())
	if c.Tool != "" {
		message = fmt.Sprintf(`"content":null,"tool_calls":[{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]`, js("call_"+r.ID), js(c.Tool), js(r.text()))
	}
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%q}]%s}`,
		js("chatcmpl-"+r.ID), r.At.Unix(), js(c.Model), message, c.finish(r), stated(r.Usage))
}

// chunk adds an event of a chat stream; choices may be empty.
func (s *stream) chunk(choices, usage string) {
	s.add("", fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"choices":[%s]%s}`,
		js("chatcmpl-"+s.ID), s.At.Unix(), js(s.Model), choices, stated(usage)))
}

func (s *stream) delta(delta, finish string) {
	reason := "null"
	if finish != "" {
		reason = js(finish)
	}
	s.chunk(fmt.Sprintf(`{"index":0,"delta":%s,"finish_reason":%s}`, delta, reason), "")
}

func chatOpens(s *stream) {
	if s.Tool == "" {
		s.delta(`{"role":"assistant","content":""}`, "")
	} else {
		s.delta(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, js("call_"+s.ID), js(s.Tool)), "")
	}
	s.step()
}

func chatSays(s *stream, word string) {
	if s.Tool == "" {
		s.delta(`{"content":`+js(word)+`}`, "")
		return
	}
	s.delta(`{"tool_calls":[{"index":0,"function":{"arguments":`+js(word)+`}}]}`, "")
}

func chatCloses(s *stream) {
	s.delta(`{}`, s.finish(s.Reply))
	s.step()
	if s.wantUsage && s.Usage != "" {
		s.chunk("", s.Usage)
		s.step()
	}
	s.add("", "[DONE]")
	s.last()
}

func openAIFails(s *stream) {
	s.add("", fmt.Sprintf(`{"error":{"message":%s,"type":"server_error","param":null,"code":null}}`, js(s.Fails)))
}

func (c Call) completion(r Reply) string {
	return fmt.Sprintf(`{"id":%s,"object":"text_completion","created":%d,"model":%s,"choices":[{"text":%s,"index":0,"logprobs":null,"finish_reason":%q}]%s}`,
		js("cmpl-"+r.ID), r.At.Unix(), js(c.Model), js(r.text()), c.finish(r), stated(r.Usage))
}

// piece adds an event of a stream of completions.
func (s *stream) piece(choices, usage string) {
	s.add("", fmt.Sprintf(`{"id":%s,"object":"text_completion","created":%d,"model":%s,"choices":[%s]%s}`,
		js("cmpl-"+s.ID), s.At.Unix(), js(s.Model), choices, stated(usage)))
}

func textOpens(s *stream) {
	textSays(s, "")
	s.step()
}

func textSays(s *stream, word string) {
	s.piece(`{"text":`+js(word)+`,"index":0,"logprobs":null,"finish_reason":null}`, "")
}

func textCloses(s *stream) {
	s.piece(fmt.Sprintf(`{"text":"","index":0,"logprobs":null,"finish_reason":%q}`, s.finish(s.Reply)), "")
	s.step()
	if s.wantUsage && s.Usage != "" {
		s.piece("", s.Usage)
		s.step()
	}
	s.add("", "[DONE]")
	s.last()
}
