package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

// Why figures cannot be read.
const (
	usageAbsent   = "usage_absent"
	usageNonsense = "usage_nonsense"
)

// Usage normalises a form's usage object into disjoint classes. An explicit
// zero is a zero. Nothing ("usage_absent"), or nonsense (negative, beyond 10^9,
// a part larger than its whole: "usage_nonsense"), is why != "": the figures
// then have to be estimated.
func Usage(f Form, v jsontext.Value) (t limits.Tokens, why string) {
	if f == CountTokens {
		return t, "" // it counts, and takes nothing
	}
	var s statement
	s.read(f, v)
	return s.tokens()
}

// statement is what a provider said of a call's usage, in whatever words. In a
// stream there are several: the last one counts.
type statement struct {
	f      Form
	said   bool
	wrong  bool
	openai openAIUsage
	claude claudeUsage
	output bool // of Anthropic's: stated after the beginning
}

// openAIUsage is the usage object of OpenAI's forms
// (https://platform.openai.com/docs/api-reference/chat/object,
// …/responses/object, …/embeddings, …/images, …/audio): the prompt includes the
// cached tokens, the output the reasoning ones. Chat says prompt and completion
// where the others say input and output. DeepSeek states cached ones as
// prompt_cache_hit_tokens, OpenRouter writes to a cache as cache_write_tokens
// (https://openrouter.ai/docs/use-cases/usage-accounting). xAI and Gemini leave
// reasoning out of completion_tokens, and count it in the total only.
type openAIUsage struct {
	Prompt       *int64        `json:"prompt_tokens"`
	Completion   *int64        `json:"completion_tokens"`
	Input        *int64        `json:"input_tokens"`
	Output       *int64        `json:"output_tokens"`
	Total        *int64        `json:"total_tokens"`
	PromptBy     *inputDetails `json:"prompt_tokens_details"`
	InputBy      *inputDetails `json:"input_tokens_details"`
	CompletionBy *outDetails   `json:"completion_tokens_details"`
	OutputBy     *outDetails   `json:"output_tokens_details"`
	CacheHit     *int64        `json:"prompt_cache_hit_tokens"`
}

type inputDetails struct {
	Audio  raw    `json:"audio_tokens"`
	Cached *int64 `json:"cached_tokens"`
	Write  *int64 `json:"cache_write_tokens"`
}

type outDetails struct {
	Audio     raw    `json:"audio_tokens"`
	Reasoning *int64 `json:"reasoning_tokens"`
}

// claudeUsage is the usage object of Anthropic's messages
// (https://platform.claude.com/docs/en/api/messages): its classes are disjoint
// already, and thinking is a part of the output.
type claudeUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Tier       word   `json:"service_tier"`
	Geo        word   `json:"inference_geo"`
	Speed      word   `json:"speed"`
	CacheBy    raw    `json:"cache_creation"`
	Tools      raw    `json:"server_tool_use"`
}

// read takes a newer statement. One that cannot be read is nonsense until a
// readable one comes.
func (s *statement) read(f Form, v jsontext.Value) {
	s.f = f
	if !present(v) {
		return
	}
	if f == Messages {
		var u claudeUsage
		if s.wrong = json.Unmarshal(v, &u, lenient) != nil; !s.wrong {
			s.claude.update(u)
		}
	} else {
		var u openAIUsage
		if s.wrong = json.Unmarshal(v, &u, lenient) != nil; !s.wrong {
			s.openai = u
		}
	}
	s.said = true
}

// update takes what a newer statement says. One with input_tokens is a full
// statement of the input: classes that it leaves out are none, unless it only
// repeats the figure from before.
func (u *claudeUsage) update(newer claudeUsage) {
	if newer.Input != nil {
		if u.Input == nil || *u.Input != *newer.Input {
			u.CacheRead, u.CacheWrite = nil, nil
		}
		u.Input = newer.Input
	}
	u.CacheRead = latest(newer.CacheRead, u.CacheRead)
	u.CacheWrite = latest(newer.CacheWrite, u.CacheWrite)
	u.Output = latest(newer.Output, u.Output)
	u.Tier = word(first(string(newer.Tier), string(u.Tier)))
	u.Geo = word(first(string(newer.Geo), string(u.Geo)))
	u.Speed = word(first(string(newer.Speed), string(u.Speed)))
	if newer.CacheBy != nil {
		u.CacheBy = newer.CacheBy
	}
	if newer.Tools != nil {
		u.Tools = newer.Tools
	}
}

// apart tells whether what was stated has something that prices of tokens do not
// cover, and tier in what class it was served.
func (s *statement) apart() (apart bool, tier Tier) {
	if s.f == Messages {
		return s.claude.apart(), Tier(s.claude.Tier)
	}
	return s.openai.apart(s.f), ""
}

// latest is the first figure that is stated.
func latest(figures ...*int64) *int64 {
	for _, n := range figures {
		if n != nil {
			return n
		}
	}
	return nil
}

func or0(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func (s *statement) tokens() (limits.Tokens, string) {
	switch {
	case !s.said:
		return limits.Tokens{}, usageAbsent
	case s.wrong:
		return limits.Tokens{}, usageNonsense
	case s.f == Messages:
		return s.claude.tokens()
	}
	return s.openai.tokens(s.f)
}

func (u claudeUsage) tokens() (limits.Tokens, string) {
	if u.Input == nil || u.Output == nil {
		return limits.Tokens{}, usageAbsent
	}
	return checked(limits.Tokens{Input: *u.Input, CachedInput: or0(u.CacheRead), CacheWrite: or0(u.CacheWrite), Output: *u.Output})
}

func checked(t limits.Tokens) (limits.Tokens, string) {
	if len((limits.Cost{Tokens: t}).Check()) > 0 {
		return limits.Tokens{}, usageNonsense
	}
	return t, ""
}

func (u openAIUsage) tokens(f Form) (limits.Tokens, string) {
	input, output := latest(u.Prompt, u.Input), latest(u.Completion, u.Output)
	if input == nil && output == nil && f == Embeddings {
		input = u.Total
	}
	if output == nil && withoutOutput(f) {
		output = new(int64)
	}
	if input == nil || output == nil {
		return limits.Tokens{}, usageAbsent
	}
	in, out := firstInput(u.PromptBy, u.InputBy), firstOut(u.CompletionBy, u.OutputBy)
	cached, write, reasoning := or0(latest(in.Cached, u.CacheHit)), or0(in.Write), or0(out.Reasoning)
	for _, n := range []int64{cached, write, reasoning, *input, *output} {
		if n < 0 || n > 1<<40 { // far beyond what is believed, and safe to add
			return limits.Tokens{}, usageNonsense
		}
	}
	t := limits.Tokens{Input: *input - cached - write, CachedInput: cached, CacheWrite: write, Output: *output - reasoning, Reasoning: reasoning}
	if excess := or0(u.Total) - *input - *output; excess > 0 && u.Completion != nil && (excess == reasoning || reasoning == 0) {
		t.Output, t.Reasoning = *output, excess
	}
	return checked(t)
}

// withoutOutput tells whether the form's usage says nothing of an output.
func withoutOutput(f Form) bool { return f == Embeddings || f == Moderations }

func firstInput(by ...*inputDetails) (d inputDetails) {
	for _, one := range by {
		if one != nil {
			return *one
		}
	}
	return d
}

func firstOut(by ...*outDetails) (d outDetails) {
	for _, one := range by {
		if one != nil {
			return *one
		}
	}
	return d
}
