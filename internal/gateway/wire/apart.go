package wire

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Tier is in what class of service a call is or was served, as its provider names
// it; "" is not said.
type Tier string

// Usual tells whether a tier is the one that a provider's list price is for, as
// far as is said.
func (t Tier) Usual() bool {
	return slices.Contains([]Tier{"", "auto", "default", "standard", "standard_only", "on_demand"}, t)
}

// apart tells whether a statement of OpenAI's has what its prices of tokens do not
// cover: sound in a conversation has a price of its own.
func (u *openAIUsage) apart(f Form) bool {
	in, out := firstInput(u.PromptBy, u.InputBy), firstOut(u.CompletionBy, u.OutputBy)
	return (f == Chat || f == Responses) && (some(in.Audio) || some(out.Audio))
}

// apart is the same of Anthropic's: writes to a cache of an hour, searches, a
// region and a speed that cost extra.
func (u *claudeUsage) apart() bool {
	var cache struct {
		Hour raw `json:"ephemeral_1h_input_tokens"`
	}
	var tools struct {
		Searches raw `json:"web_search_requests"`
	}
	_ = json.Unmarshal(u.CacheBy, &cache, lenient) // what is not there says nothing
	_ = json.Unmarshal(u.Tools, &tools, lenient)   // see above
	return some(cache.Hour) || some(tools.Searches) ||
		u.Geo != "" && u.Geo != "global" && u.Geo != "not_available" || u.Speed != "" && u.Speed != "standard"
}

// some tells whether a figure says that there is any.
func some(v raw) bool {
	return len(v) > 0 && jsontext.Value(v).Kind() == '0' && string(v) != "0"
}
