// Package wire reads and translates what goes over the wire between clients,
// the gateway and providers: requests, answers and streams in OpenAI's and
// Anthropic's forms. It is pure: no network, no clock, no state beyond a
// stream's own. Functions may be called at once; a Reader and a Stream belong to
// one goroutine each.
//
// A call that is served in its own form is not translated: members that nobody
// here knows pass untouched. Translation is between chat completions and
// messages. A member is either said in the other form, or refused by its name
// where the answer would be another without it, or dropped where it only shades
// the answer or concerns the provider's books. What neither side documents is
// dropped. docs/gateway.md lists all three.
package wire
