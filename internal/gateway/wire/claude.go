package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// claudeBlock is a part of a message in Anthropic's form
// (https://platform.claude.com/docs/en/api/messages): which members there are
// goes by its type.
type claudeBlock struct {
	Type         string         `json:"type"`
	Text         string         `json:"text,omitzero"`
	Source       *claudeSource  `json:"source,omitzero"`
	Title        string         `json:"title,omitzero"`
	ID           string         `json:"id,omitzero"`
	Name         string         `json:"name,omitzero"`
	Input        jsontext.Value `json:"input,omitzero"`
	ToolUseID    string         `json:"tool_use_id,omitzero"`
	Content      jsontext.Value `json:"content,omitzero"`
	IsError      bool           `json:"is_error,omitzero"`
	Thinking     string         `json:"thinking,omitzero"`
	Signature    string         `json:"signature,omitzero"`
	Data         string         `json:"data,omitzero"`
	CacheControl jsontext.Value `json:"cache_control,omitzero"`
}

// claudeSource is where an image's or a document's bytes are.
type claudeSource struct {
	Type      string         `json:"type"`
	MediaType string         `json:"media_type,omitzero"`
	Data      string         `json:"data,omitzero"`
	URL       string         `json:"url,omitzero"`
	Content   jsontext.Value `json:"content,omitzero"`
}

// UnmarshalJSONFrom reads any value: a source that is no object belongs to a
// block that is refused by its type.
func (s *claudeSource) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil || v.Kind() != '{' {
		return err
	}
	type members claudeSource
	return json.Unmarshal(v, (*members)(s), lenient)
}

// claudeMessage is one turn; turns alternate between user and assistant.
type claudeMessage struct {
	Role    string           `json:"role"`
	Content []jsontext.Value `json:"content"`
}

type claudeRequest struct {
	generation generation // of the model that serves

	Model         jsontext.Value      `json:"model,omitzero"`
	MaxTokens     int64               `json:"max_tokens"`
	System        []jsontext.Value    `json:"system,omitempty"`
	Messages      []claudeMessage     `json:"messages"`
	Tools         []claudeTool        `json:"tools,omitempty"`
	ToolChoice    *claudeToolChoice   `json:"tool_choice,omitzero"`
	StopSequences []string            `json:"stop_sequences,omitempty"`
	Temperature   jsontext.Value      `json:"temperature,omitzero"`
	TopP          jsontext.Value      `json:"top_p,omitzero"`
	TopK          jsontext.Value      `json:"top_k,omitzero"`
	Thinking      jsontext.Value      `json:"thinking,omitzero"`
	OutputConfig  *claudeOutputConfig `json:"output_config,omitzero"`
	Metadata      *claudeMetadata     `json:"metadata,omitzero"`
	Stream        bool                `json:"stream,omitzero"`
}

type claudeOutputConfig struct {
	Effort string        `json:"effort,omitzero"`
	Format *claudeFormat `json:"format,omitzero"`
}

type claudeFormat struct {
	Type   string         `json:"type"`
	Schema jsontext.Value `json:"schema"`
}

type claudeMetadata struct {
	UserID string `json:"user_id,omitzero"`
}

type claudeTool struct {
	Type         string         `json:"type,omitzero"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitzero"`
	InputSchema  jsontext.Value `json:"input_schema,omitzero"`
	Strict       bool           `json:"strict,omitzero"`
	CacheControl jsontext.Value `json:"cache_control,omitzero"`
}

type claudeToolChoice struct {
	Type            string `json:"type"`
	Name            string `json:"name,omitzero"`
	DisableParallel bool   `json:"disable_parallel_tool_use,omitzero"`
}

// claudeAnswer is a whole answer, and what a stream of one begins with.
type claudeAnswer struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []jsontext.Value `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        claudeFigures    `json:"usage"`
}

// claudeFigures is a usage object as it is written.
type claudeFigures struct {
	Input      int64 `json:"input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func toClaudeFigures(t limits.Tokens) claudeFigures {
	return claudeFigures{Input: t.Input, CacheWrite: t.CacheWrite, CacheRead: t.CachedInput, Output: t.Output + t.Reasoning}
}
