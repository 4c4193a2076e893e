package gateway

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
)

// leastOfResponse is the smallest max_output_tokens that OpenAI documents.
const leastOfResponse = 16

// capOutput gives each answer of a call that states no ceiling its part of the output
// that is to be reserved, and returns what to reserve then: the parts together,
// no less than a provider takes as a ceiling. Other calls keep what they have.
func (call *call) capOutput(output int64) int64 {
	if call.maxOutput >= 0 || call.form.media {
		return output
	}
	least := int64(1)
	if call.form.wire == wire.Responses {
		least = leastOfResponse
	}
	call.ceiling = max(output/call.answers, least)
	return call.ceiling * call.answers
}

// setCeiling states the ceiling that the call was given in the body for a
// candidate, by the one name that its provider reads: no more than its model takes.
func (call *call) setCeiling(o *jsonbody.Object, c candidate) {
	if call.ceiling == 0 {
		return
	}
	name := "max_tokens"
	switch {
	case c.in == wire.Responses:
		name = "max_output_tokens"
	case c.in == wire.Chat && !toChat(c).MaxTokens:
		name = "max_completion_tokens"
	}
	if c.in == wire.Chat { // the other is null, or was set for a candidate before
		o.Drop("max_tokens")
		o.Drop("max_completion_tokens")
	}
	o.Set(name, jsontext.Value(strconv.FormatInt(c.atMost(call.ceiling), 10)))
}

// atMost is a ceiling that the candidate's model takes.
func (c candidate) atMost(ceiling int64) int64 {
	if c.most > 0 {
		return min(ceiling, c.most)
	}
	return ceiling
}
