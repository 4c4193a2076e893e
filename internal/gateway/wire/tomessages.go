package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// ToMessages is what a request in Anthropic's form needs and OpenAI's may leave
// out.
type ToMessages struct {
	MaxTokens int64  // where the call states none, since Anthropic demands a ceiling; 0: 4096
	Model     string // that serves, by whose generation thinking and sampling are said; "": the call's
}

// defaultCeiling is an output ceiling that every model of Anthropic's takes.
const defaultCeiling = 4096

// jsonOnly asks for what response_format json_object promises, which
// Anthropic's form has no member for.
const jsonOnly = "Answer with one JSON object and nothing else: no words around it, no code fence."

// chatOnly are members that change what an answer is, and that Anthropic's form
// cannot say.
var chatOnly = []foreign{
	{"n", []string{"1"}},
	{"logprobs", []string{"false"}},
	{"top_logprobs", []string{"0"}},
	{"logit_bias", []string{"{}"}},
	{"modalities", []string{`["text"]`, "[]"}},
	{"audio", nil},
	{"web_search_options", nil},
	{"functions", []string{"[]"}},
	{"function_call", []string{`"auto"`, `"none"`}},
}

// ChatToMessages writes a chat completion request as a messages request; its
// model stays what it is. What Anthropic's form cannot say is Invalid, with the
// member's name.
func ChatToMessages(body *jsonbody.Object, o ToMessages) ([]byte, error) {
	if err := refuseForeign(body, chatOnly); err != nil {
		return nil, err
	}
	r := claudeRequest{Model: body.Get("model")}
	r.generation = generationOf(first(o.Model, text(r.Model)))
	for _, read := range []func(*jsonbody.Object) error{
		r.readMessages, r.readTools, r.readStop, r.readFormat, r.readUser,
		func(b *jsonbody.Object) error { return r.readCeiling(b, o.MaxTokens) },
		r.readThinking, r.readSampling,
	} {
		if err := read(body); err != nil {
			return nil, err
		}
	}
	return encode(r)
}

func (r *claudeRequest) readCeiling(body *jsonbody.Object, otherwise int64) error {
	if err := decode(body.Get("stream"), "/stream", &r.Stream); err != nil {
		return err
	}
	if err := decode(body.Get("max_tokens"), "/max_tokens", &r.MaxTokens); err != nil {
		return err
	}
	if err := decode(body.Get("max_completion_tokens"), "/max_completion_tokens", &r.MaxTokens); err != nil {
		return err
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = otherwise
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = defaultCeiling
	}
	return nil
}

// readStop reads one sequence or a list. Anthropic refuses a sequence of white
// space.
func (r *claudeRequest) readStop(body *jsonbody.Object) error {
	v := body.Get("stop")
	if !present(v) {
		return nil
	}
	if v.Kind() == '"' {
		r.StopSequences = []string{text(v)}
	} else if err := decode(v, "/stop", &r.StopSequences); err != nil {
		return err
	}
	for _, s := range r.StopSequences {
		if strings.TrimSpace(s) == "" {
			return cannotSay("/stop", "a stop sequence of white space")
		}
	}
	return nil
}

// readFormat says a schema as Anthropic's structured output
// (https://platform.claude.com/docs/en/build-with-claude/structured-outputs),
// and in words to models from before there was one.
func (r *claudeRequest) readFormat(body *jsonbody.Object) error {
	var f chatFormat
	if err := decode(body.Get("response_format"), "/response_format", &f); err != nil {
		return err
	}
	switch f.Type {
	case "", "text":
	case "json_object":
		return r.instruct(jsonOnly)
	case "json_schema":
		if f.Schema == nil || !present(f.Schema.Schema) {
			return jsonbody.Field("/response_format/json_schema/schema", "missing_required_parameter", "A schema is needed.")
		}
		if r.generation.before(firstStrict) {
			return r.instruct(jsonOnly + " It follows this JSON schema: " + compacted(f.Schema.Schema))
		}
		r.output().Format = &claudeFormat{Type: "json_schema", Schema: f.Schema.Schema}
	default:
		return cannotSay("/response_format/type", "the response format "+strconv.Quote(f.Type))
	}
	return nil
}

// instruct adds words of ours to the system text.
func (r *claudeRequest) instruct(words string) error {
	b, err := encode(claudeBlock{Type: "text", Text: words})
	r.System = append(r.System, b)
	return err
}

func (r *claudeRequest) output() *claudeOutputConfig {
	if r.OutputConfig == nil {
		r.OutputConfig = &claudeOutputConfig{}
	}
	return r.OutputConfig
}

func (r *claudeRequest) readUser(body *jsonbody.Object) error {
	for _, name := range []string{"safety_identifier", "user"} {
		if user := text(body.Get(name)); user != "" {
			r.Metadata = &claudeMetadata{UserID: opaque(user)}
			return nil
		}
	}
	return nil
}

// readThinking says an effort as a budget or, to models of today, as an effort.
// Anthropic's own member passes as it is. Nothing is said where Anthropic would
// refuse it: with a forced tool, in a turn whose thoughts the client does not
// send back, and where the ceiling leaves no room.
func (r *claudeRequest) readThinking(body *jsonbody.Object) error {
	if v := body.Get("thinking"); present(v) {
		r.Thinking = v
		return nil
	}
	effort, g := text(body.Get("reasoning_effort")), r.generation
	if effort == "" || g.before(firstThinking) {
		return nil
	}
	if effort == "none" {
		if !g.before(firstAdaptive) {
			r.Thinking = jsontext.Value(`{"type":"disabled"}`)
		}
		return nil
	}
	if budgets[effort] == 0 {
		return jsonbody.Field("/reasoning_effort", "unknown_value", "reasoning_effort must be none, minimal, low, medium, high or xhigh.")
	}
	forced := r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool")
	if forced || r.thoughtless() {
		return nil
	}
	if !g.before(firstAdaptive) {
		r.Thinking = jsontext.Value(`{"type":"adaptive"}`)
		r.output().Effort = claudeEffort(effort, g)
	} else if n := budget(effort, r.MaxTokens); n > 0 {
		r.Thinking = jsontext.Value(`{"type":"enabled","budget_tokens":` + strconv.FormatInt(n, 10) + `}`)
	}
	return nil
}

// readSampling caps the temperature at Anthropic's 1, and leaves out what the
// model would refuse: every member of sampling of newer ones, any beside
// thinking. A top_p of 1 is the default and says nothing.
func (r *claudeRequest) readSampling(body *jsonbody.Object) error {
	temperature, topP, topK := body.Get("temperature"), body.Get("top_p"), body.Get("top_k")
	var t, p float64
	if err := decode(temperature, "/temperature", &t); err != nil {
		return err
	}
	if err := decode(topP, "/top_p", &p); err != nil {
		return err
	}
	if !r.generation.before(noSampling) || present(r.Thinking) && !present(body.Get("thinking")) {
		return nil
	}
	if t > 1 {
		temperature = jsontext.Value("1")
	}
	r.Temperature, r.TopK = orNil(temperature), orNil(topK)
	if p != 1 {
		r.TopP = orNil(topP)
	}
	return nil
}
