// Package wire reads and translates what goes over the wire between clients,
// the gateway and providers: requests, answers and streams in OpenAI's and
// Anthropic's forms. It is pure: no network, no clock, no state beyond a
// stream's own. Nothing here is safe for concurrent use but its functions.
package wire
