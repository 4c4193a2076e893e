package gateway

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// openAIUsage is the usage object of OpenAI's chat completions
// (https://platform.openai.com/docs/api-reference/chat/object): prompt_tokens
// includes the cached ones, completion_tokens the reasoning ones.
type openAIUsage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`
	PromptBy   *struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionBy *struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// readUsage normalises a usage object into disjoint classes. An explicit zero
// is a zero. Nothing, or nonsense (negative, beyond 10^9, a part larger than
// its whole), is why != "": the figures then have to be estimated.
func readUsage(v jsontext.Value) (t limits.Tokens, why string) {
	if v == nil || v.Kind() == 'n' {
		return t, "usage_absent"
	}
	var u openAIUsage
	if err := json.Unmarshal(v, &u); err != nil {
		return t, "usage_nonsense"
	}
	if u.Prompt == nil || u.Completion == nil {
		return t, "usage_absent"
	}
	var cached, reasoning int64
	if u.PromptBy != nil && u.PromptBy.Cached != nil {
		cached = *u.PromptBy.Cached
	}
	if u.CompletionBy != nil && u.CompletionBy.Reasoning != nil {
		reasoning = *u.CompletionBy.Reasoning
	}
	t = limits.Tokens{Input: *u.Prompt - cached, CachedInput: cached, Output: *u.Completion - reasoning, Reasoning: reasoning}
	if cached < 0 || reasoning < 0 || *u.Prompt < 0 || *u.Completion < 0 || t.Input < 0 || t.Output < 0 || len((limits.Cost{Tokens: t}).Check()) > 0 {
		return limits.Tokens{}, "usage_nonsense"
	}
	return t, ""
}
