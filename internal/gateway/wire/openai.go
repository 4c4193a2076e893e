package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// chatMessage is a message in OpenAI's form
// (https://platform.openai.com/docs/api-reference/chat/create).
// reasoning_content is how DeepSeek and others show reasoning, thinking_blocks
// how signed reasoning of Anthropic's keeps its signature on the way through a
// client that knows neither.
type chatMessage struct {
	Role       string           `json:"role"`
	Content    jsontext.Value   `json:"content,omitzero"`
	Refusal    jsontext.Value   `json:"refusal,omitzero"`
	Reasoning  string           `json:"reasoning_content,omitzero"`
	Thinking   []jsontext.Value `json:"thinking_blocks,omitempty"`
	ToolCalls  []chatToolCall   `json:"tool_calls,omitempty"`
	ToolCallID string           `json:"tool_call_id,omitzero"`
	Function   jsontext.Value   `json:"function_call,omitzero"`
	Audio      jsontext.Value   `json:"audio,omitzero"`
}

type chatToolCall struct {
	Index    *int         `json:"index,omitzero"` // in a stream
	ID       string       `json:"id,omitzero"`
	Type     string       `json:"type,omitzero"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitzero"`
	Arguments loose  `json:"arguments"` // JSON, in a string
}

// chatPart is a part of a message's content.
type chatPart struct {
	Type         string         `json:"type"`
	Text         string         `json:"text,omitzero"`
	Refusal      string         `json:"refusal,omitzero"`
	ImageURL     *chatImage     `json:"image_url,omitzero"`
	File         *chatFile      `json:"file,omitzero"`
	CacheControl jsontext.Value `json:"cache_control,omitzero"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatFile struct {
	Data string `json:"file_data,omitzero"`
	ID   string `json:"file_id,omitzero"`
	Name string `json:"filename,omitzero"`
}

type chatTool struct {
	Type         string         `json:"type"`
	Function     chatDefinition `json:"function"`
	CacheControl jsontext.Value `json:"cache_control,omitzero"`
}

type chatDefinition struct {
	Name         string         `json:"name"`
	Description  string         `json:"description,omitzero"`
	Parameters   jsontext.Value `json:"parameters,omitzero"`
	Strict       bool           `json:"strict,omitzero"`
	CacheControl jsontext.Value `json:"cache_control,omitzero"`
}

type chatRequest struct {
	Model               jsontext.Value `json:"model,omitzero"`
	Messages            []chatMessage  `json:"messages"`
	MaxTokens           int64          `json:"max_tokens,omitzero"`
	MaxCompletionTokens int64          `json:"max_completion_tokens,omitzero"`
	Tools               []chatTool     `json:"tools,omitempty"`
	ToolChoice          jsontext.Value `json:"tool_choice,omitzero"`
	Parallel            jsontext.Value `json:"parallel_tool_calls,omitzero"`
	Stop                []string       `json:"stop,omitempty"`
	Temperature         jsontext.Value `json:"temperature,omitzero"`
	TopP                jsontext.Value `json:"top_p,omitzero"`
	ReasoningEffort     string         `json:"reasoning_effort,omitzero"`
	ResponseFormat      *chatFormat    `json:"response_format,omitzero"`
	User                string         `json:"user,omitzero"`
	Stream              bool           `json:"stream,omitzero"`
}

type chatFormat struct {
	Type   string      `json:"type"`
	Schema *chatSchema `json:"json_schema,omitzero"`
}

type chatSchema struct {
	Name   string         `json:"name"`
	Schema jsontext.Value `json:"schema,omitzero"`
	Strict bool           `json:"strict,omitzero"`
}

// chatAnswer is a whole answer, or a chunk of a stream.
type chatAnswer struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []chatChoice   `json:"choices"`
	Usage   jsontext.Value `json:"usage,omitzero"`
}

type chatChoice struct {
	Index    int          `json:"index"`
	Message  *chatMessage `json:"message,omitzero"`
	Delta    *chatDelta   `json:"delta,omitzero"`
	Logprobs *struct{}    `json:"logprobs"` // null
	Finish   *string      `json:"finish_reason"`
}

type chatDelta struct {
	Role      string           `json:"role,omitzero"`
	Content   *string          `json:"content,omitzero"`
	Reasoning string           `json:"reasoning_content,omitzero"`
	Thinking  []jsontext.Value `json:"thinking_blocks,omitempty"`
	ToolCalls []chatToolCall   `json:"tool_calls,omitempty"`
}

// chatFigures is a usage object as it is written.
type chatFigures struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	PromptBy   struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens,omitzero"`
	} `json:"prompt_tokens_details"`
	CompletionBy struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func toChatFigures(t limits.Tokens) *chatFigures {
	f := chatFigures{Prompt: t.Input + t.CachedInput + t.CacheWrite, Completion: t.Output + t.Reasoning, Total: t.Total()}
	f.PromptBy.Cached, f.PromptBy.Write = t.CachedInput, t.CacheWrite
	f.CompletionBy.Reasoning = t.Reasoning
	return &f
}
