package mimic

import "fmt"

// Counts are tokens in disjoint classes.
type Counts struct{ Input, Cached, CacheWrite, Output, Reasoning int }

// Tokens is what a provider counts here for texts: one for each started four
// bytes, and three around each text. Texts are counted as the JSON that they came
// as.
func Tokens(texts ...string) int {
	n := 0
	for _, t := range texts {
		n += 3 + (len(t)+3)/4
	}
	return n
}

// Counts is what the call takes with that many pieces of an answer. A file to
// transcribe counts for its first kilobytes.
func (c Call) Counts(pieces int) Counts {
	switch c.Route {
	case Speech, Moderations, CountTokens:
		return Counts{}
	case Transcriptions:
		return Counts{Input: 1 + len(c.Parts[0])/1024, Output: pieces}
	case Embeddings:
		return Counts{Input: Tokens(c.Parts...)}
	case Images:
		return Counts{Input: Tokens(c.Parts...), Output: 16 * c.items}
	}
	return Counts{Input: Tokens(c.Parts...), Output: pieces}
}

// Usage is the usage object of a route that states these figures, or "" where
// the route states none. OpenAI's input includes what was cached, and has no word
// for what was written to a cache; the output of both includes reasoning.
func Usage(route string, n Counts) string {
	in, out := n.Input+n.Cached+n.CacheWrite, n.Output+n.Reasoning
	switch route {
	case Chat, Completions:
		return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d%s%s}`, in, out, in+out,
			detail("prompt_tokens_details", "cached_tokens", n.Cached), detail("completion_tokens_details", "reasoning_tokens", n.Reasoning))
	case Embeddings:
		return fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":%d}`, in, in)
	case Responses:
		return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
			in, n.Cached, out, n.Reasoning, in+out)
	case Messages:
		return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, n.Input, n.CacheWrite, n.Cached, out)
	case Images:
		return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"text_tokens":%d,"image_tokens":0},"output_tokens":%d,"total_tokens":%d}`, in, in, out, in+out)
	case Transcriptions:
		return fmt.Sprintf(`{"type":"tokens","input_tokens":%d,"input_token_details":{"text_tokens":0,"audio_tokens":%d},"output_tokens":%d,"total_tokens":%d}`, in, in, out, in+out)
	}
	return ""
}

func detail(object, name string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`,%q:{%q:%d}`, object, name, n)
}
