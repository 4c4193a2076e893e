package verdict

import (
	"net/http"
	"strconv"
	"time"

	"weir/internal/limits"
)

// anthropicDimension are the words of Anthropic's headers
// (https://docs.anthropic.com/en/api/rate-limits): requests, input tokens and
// output tokens.
var anthropicDimension = []struct {
	word       string
	dimensions []limits.Dimension // the first that has a limit
}{
	{"Requests", []limits.Dimension{limits.DimensionRequests}},
	{"Tokens", []limits.Dimension{limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens}},
	{"Input-Tokens", []limits.Dimension{limits.DimensionInputTokens, limits.DimensionTokens}},
	{"Output-Tokens", []limits.Dimension{limits.DimensionOutputTokens, limits.DimensionTokens}},
}

// AnthropicHeaders sets Anthropic's twelve anthropic-ratelimit headers: of the
// same limits as Headers, with the instant at which a limit is full again as
// RFC 3339. A limit of all tokens stands for those of input and of output that
// have none of their own. Where there is no limit, its headers are absent.
func AnthropicHeaders(h http.Header, states []limits.State, now time.Time) {
	var binding []*limits.State
	for i := range states {
		if s := &states[i]; shown(s) {
			binding = bind(binding, s, sameDimension)
		}
	}
	for _, a := range anthropicDimension {
		s := firstOf(binding, a.dimensions)
		if s == nil {
			continue
		}
		h.Set("Anthropic-Ratelimit-"+a.word+"-Limit", strconv.FormatInt(ceiling(s), 10))
		h.Set("Anthropic-Ratelimit-"+a.word+"-Remaining", strconv.FormatInt(s.Remaining, 10))
		h.Set("Anthropic-Ratelimit-"+a.word+"-Reset", now.Add(s.Full+time.Second-1).UTC().Truncate(time.Second).Format(time.RFC3339))
	}
}

func firstOf(binding []*limits.State, dimensions []limits.Dimension) *limits.State {
	for _, d := range dimensions {
		for _, s := range binding {
			if s.Limit.Dimension == d {
				return s
			}
		}
	}
	return nil
}
