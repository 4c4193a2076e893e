package gateway

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

func (call *call) readChat() error {
	if err := list(call.body, "messages", "messages"); err != nil {
		return err
	}
	if err := call.readStream(); err != nil {
		return err
	}
	if err := call.readChoices("n"); err != nil {
		return err
	}
	if err := call.readOutput(call.choices, "max_tokens", "max_completion_tokens"); err != nil {
		return err
	}
	call.label(call.body, "safety_identifier", "user")
	call.metadata()
	call.readConversation()
	return nil
}

func (call *call) readCompletion() error {
	if err := call.readStream(); err != nil {
		return err
	}
	if err := call.readChoices("n"); err != nil {
		return err
	}
	best, err := whole(call.body, "best_of", 1, maxChoices)
	if err != nil {
		return err
	}
	prompts := promptsIn(call.body.Get("prompt"))
	call.choices *= prompts
	call.label(call.body, "safety_identifier", "user")
	return call.readOutput(max(best*prompts, call.choices), "max_tokens")
}

// promptsIn counts the prompts of a completion: a list of texts, or of lists of
// tokens, is several.
func promptsIn(v jsontext.Value) int64 {
	if v.Kind() != '[' {
		return 1
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true), lenient)
	_, _ = d.ReadToken()
	if d.PeekKind() == '0' {
		return 1
	}
	var n int64
	for d.PeekKind() != ']' && d.SkipValue() == nil {
		n++
	}
	return max(n, 1)
}

func (call *call) readResponse() (err error) {
	if call.stream, err = boolean(call.body, "stream", "/stream"); err != nil {
		return err
	}
	background, err := boolean(call.body, "background", "/background")
	if err != nil {
		return err
	}
	if background {
		return jsonbody.Field("/background", "unsupported_parameter", "A response in the background is fetched later, and what it took is not known here; leave background out.")
	}
	call.label(call.body, "safety_identifier", "user")
	call.metadata()
	call.readConversation()
	return call.readOutput(1, "max_output_tokens")
}

func (call *call) readEmbedding() error {
	call.maxOutput = 0
	call.label(call.body, "user")
	return needed(call.body, "input")
}

func (call *call) readMessages() (err error) {
	if err := list(call.body, "messages", "messages"); err != nil {
		return err
	}
	if call.stream, err = boolean(call.body, "stream", "/stream"); err != nil {
		return err
	}
	metadata, err := call.body.Object("metadata")
	if err != nil {
		return err
	}
	if metadata != nil {
		call.label(metadata, "user_id")
	}
	return call.readOutput(1, "max_tokens")
}

func (call *call) readCount() error {
	call.maxOutput = 0
	return list(call.body, "messages", "messages")
}

func (call *call) readImages() (err error) {
	if call.stream, err = boolean(call.body, "stream", "/stream"); err != nil {
		return err
	}
	if err := needed(call.body, "prompt"); err != nil {
		return err
	}
	call.label(call.body, "user")
	return call.readChoices("n")
}

func (call *call) readSpeech() error {
	if v := call.body.Get("stream_format"); v != nil && v.Kind() == '"' {
		var format string
		_ = json.Unmarshal(v, &format) // a string, as its kind says
		call.stream = format == "sse"
	}
	return needed(call.body, "input")
}

func (call *call) readModeration() error { return needed(call.body, "input") }

func (call *call) readTranscription() error {
	switch call.parts.value("stream") {
	case "", "false":
	case "true":
		call.stream = true
	default: // a provider might read it as true
		return jsonbody.Field("/stream", "wrong_type", "stream must be true or false.")
	}
	if !call.parts.has("file") {
		return jsonbody.Field("/file", "missing_required_parameter", "file is needed.")
	}
	return nil
}

// readStream reads whether a stream is asked for, and its usage frame.
func (call *call) readStream() (err error) {
	if call.stream, err = boolean(call.body, "stream", "/stream"); err != nil {
		return err
	}
	options, err := call.body.Object("stream_options")
	if err != nil || options == nil {
		return err
	}
	call.wantUsage, err = boolean(options, "include_usage", "/stream_options/include_usage")
	return err
}

func (call *call) readChoices(name string) error {
	n, err := whole(call.body, name, 1, maxChoices)
	call.choices = max(n, 1)
	return err
}

// readOutput reads the ceiling of the output, the largest of several members,
// for so many answers.
func (call *call) readOutput(answers int64, names ...string) error {
	call.answers = answers
	for _, name := range names {
		most, err := whole(call.body, name, 1, maxOutputTokens)
		if err != nil {
			return err
		}
		call.maxOutput = max(call.maxOutput, most)
	}
	if call.maxOutput < 0 {
		return nil
	}
	if call.maxOutput > maxOutputTokens/answers {
		return jsonbody.Field("/n", "out_of_range", "The number of answers times the output ceiling is more than any model can write.")
	}
	call.maxOutput *= answers
	return nil
}

// readConversation takes OpenAI's own word for what should share a cache.
func (call *call) readConversation() {
	if v := call.body.Get("prompt_cache_key"); v != nil && v.Kind() == '"' {
		_ = json.Unmarshal(v, &call.conversation) // a string, as its kind says
	}
}
