package wire

// claudeReason is why an answer ended, in Anthropic's words
// (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons).
// OpenAI's form does not say which stop sequence it was, nor whether it was one.
// Some providers say stop where tools are called.
func claudeReason(finish string, tools bool) string {
	switch finish {
	case "length":
		return "max_tokens"
	case "tool_calls", "function_call":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	if tools {
		return "tool_use"
	}
	return "end_turn"
}

// chatReason is why an answer ended, in OpenAI's words
// (https://platform.openai.com/docs/api-reference/chat/object). end_turn,
// stop_sequence and pause_turn, which only tools of Anthropic's own lead to, are
// a stop.
func chatReason(stop string) string {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}
