package wire

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// ToChat is what the provider of a call in OpenAI's form takes.
type ToChat struct {
	MaxTokens     bool // it reads max_tokens and not max_completion_tokens
	Effort        bool // the model reasons: it takes reasoning_effort
	FixedSampling bool // the model refuses temperature and top_p, as OpenAI's that reason do
	Reasoning     bool // it takes reasoning_content back in messages of the assistant
	CacheControl  bool // it reads Anthropic's cache_control, as OpenRouter does
	NoUser        bool // it refuses members that it does not know, the end user among them, as Mistral does
}

// messagesOnly are members that change what an answer is, and that OpenAI's
// form cannot say.
var messagesOnly = []foreign{
	{"mcp_servers", []string{"[]"}},
	{"container", nil},
	{"inference_geo", []string{`"global"`}},
}

// MessagesToChat writes a messages request as a chat completion request; the
// usage frame of a stream is the caller's to ask for. What OpenAI's form cannot
// say is Invalid, with the member's name.
func MessagesToChat(body *jsonbody.Object, o ToChat) ([]byte, error) {
	if err := refuseForeign(body, messagesOnly); err != nil {
		return nil, err
	}
	r := chatRequest{Model: body.Get("model")}
	if !o.FixedSampling {
		r.Temperature, r.TopP = orNil(body.Get("temperature")), orNil(body.Get("top_p"))
	}
	for _, read := range []func(*jsonbody.Object, ToChat) error{
		r.readSystem, r.readTurns, r.readTools, r.readCeiling, r.readThinking, r.readFormat, r.readUser,
	} {
		if err := read(body, o); err != nil {
			return nil, err
		}
	}
	return encode(r)
}

func (r *chatRequest) readCeiling(body *jsonbody.Object, o ToChat) error {
	most := &r.MaxCompletionTokens
	if o.MaxTokens {
		most = &r.MaxTokens
	}
	if err := decode(body.Get("max_tokens"), "/max_tokens", most); err != nil {
		return err
	}
	if err := decode(body.Get("stop_sequences"), "/stop_sequences", &r.Stop); err != nil {
		return err
	}
	return decode(body.Get("stream"), "/stream", &r.Stream)
}

// readThinking says a thinking budget as the effort that is nearest, to models
// that take one.
func (r *chatRequest) readThinking(body *jsonbody.Object, o ToChat) error {
	var thinking struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	}
	if err := decode(body.Get("thinking"), "/thinking", &thinking); err != nil {
		return err
	}
	var config claudeOutputConfig
	if err := decode(body.Get("output_config"), "/output_config", &config); err != nil {
		return err
	}
	if !o.Effort {
		return nil
	}
	switch {
	case config.Effort == "max" || config.Effort == "xhigh": // not every model knows them
		r.ReasoningEffort = "high"
	case config.Effort != "":
		r.ReasoningEffort = config.Effort
	case thinking.Type == "enabled":
		r.ReasoningEffort = effortOf(thinking.Budget, max(r.MaxTokens, r.MaxCompletionTokens))
	}
	return nil
}

func (r *chatRequest) readFormat(body *jsonbody.Object, _ ToChat) error {
	var config claudeOutputConfig
	if err := decode(body.Get("output_config"), "/output_config", &config); err != nil {
		return err
	}
	if config.Format == nil { // as it was called before
		if err := decode(body.Get("output_format"), "/output_format", &config.Format); err != nil {
			return err
		}
	}
	if config.Format == nil {
		return nil
	}
	if config.Format.Type != "json_schema" {
		return cannotSay("/output_config/format/type", "the output format "+strconv.Quote(config.Format.Type))
	}
	r.ResponseFormat = &chatFormat{Type: "json_schema", Schema: &chatSchema{Name: "answer", Schema: config.Format.Schema, Strict: strict(config.Format.Schema)}}
	return nil
}

func (r *chatRequest) readUser(body *jsonbody.Object, o ToChat) error {
	var metadata claudeMetadata
	if err := decode(body.Get("metadata"), "/metadata", &metadata); err != nil {
		return err
	}
	if !o.NoUser {
		r.User = opaque(metadata.UserID)
	}
	return nil
}

func (r *chatRequest) readTools(body *jsonbody.Object, o ToChat) error {
	var list []claudeTool
	if err := decode(body.Get("tools"), "/tools", &list); err != nil {
		return err
	}
	for i := range list {
		t := &list[i]
		if t.Type != "" && t.Type != "custom" {
			return cannotSay(at("/tools", i)+"/type", "a tool of the type "+strconv.Quote(t.Type))
		}
		tool := chatTool{Type: "function", Function: chatDefinition{Name: t.Name, Description: t.Description, Parameters: orNil(t.InputSchema), Strict: t.Strict}}
		if o.CacheControl {
			tool.CacheControl = orNil(t.CacheControl)
		}
		r.Tools = append(r.Tools, tool)
	}
	if len(r.Tools) == 0 {
		return nil // OpenAI refuses a choice among none
	}
	return r.readToolChoice(body)
}

func (r *chatRequest) readToolChoice(body *jsonbody.Object) error {
	var c claudeToolChoice
	if err := decode(body.Get("tool_choice"), "/tool_choice", &c); err != nil {
		return err
	}
	switch c.Type {
	case "":
	case "auto", "none":
		r.ToolChoice = quoted(c.Type)
	case "any":
		r.ToolChoice = quoted("required")
	case "tool":
		r.ToolChoice = jsontext.Value(`{"type":"function","function":{"name":` + string(quoted(c.Name)) + `}}`)
	default:
		return cannotSay("/tool_choice/type", "a tool choice of the type "+strconv.Quote(c.Type))
	}
	if c.DisableParallel {
		r.Parallel = jsontext.Value("false")
	}
	return nil
}
