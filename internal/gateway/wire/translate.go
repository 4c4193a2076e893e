package wire

import (
	"weir/internal/fault"
	"weir/internal/jsonbody"
)

// ToMessages is what a request in Anthropic's form needs and OpenAI's may leave
// out.
type ToMessages struct {
	MaxTokens int64 // where the call states none: Anthropic demands a ceiling
}

// ToChat is what the provider of an OpenAI-form call takes.
type ToChat struct {
	MaxTokens    bool // it reads max_tokens and not max_completion_tokens
	Effort       bool // the model reasons: it takes reasoning_effort
	Reasoning    bool // it takes reasoning_content back in assistant messages
	CacheControl bool // it reads Anthropic's cache_control on parts
}

// AnswerOptions are what a translated answer says of itself; "" and 0 leave
// what the provider said.
type AnswerOptions struct {
	ID, Model string
	Created   int64 // Unix seconds; OpenAI's forms only
}

func untranslatable() error {
	return fault.New(fault.Invalid, "unsupported_parameter", "This call cannot be translated for its provider.")
}

// ChatToMessages writes a chat completion request as a messages request. What
// Anthropic's form cannot say is Invalid, with the member's name.
func ChatToMessages(_ *jsonbody.Object, _ ToMessages) ([]byte, error) { return nil, untranslatable() }

// MessagesToChat writes a messages request as a chat completion request. What
// OpenAI's form cannot say is Invalid, with the member's name.
func MessagesToChat(_ *jsonbody.Object, _ ToChat) ([]byte, error) { return nil, untranslatable() }

// MessagesToChatAnswer writes a whole answer of Anthropic's as one of OpenAI's.
// A body that is no such answer is Upstream, upstream_invalid_response.
func MessagesToChatAnswer(_ []byte, _ AnswerOptions) ([]byte, error) { return nil, untranslatable() }

// ChatToMessagesAnswer writes a whole answer of OpenAI's as one of Anthropic's.
// A body that is no such answer is Upstream, upstream_invalid_response.
func ChatToMessagesAnswer(_ []byte, _ AnswerOptions) ([]byte, error) { return nil, untranslatable() }
