package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/limits"
)

// prepare drops the candidates whose provider takes another form if the call
// cannot be said in it. That is found out once, with the first of them: a call
// is decided before it is said for each model. Where none is left, the error says
// what stands in the way.
func (call *call) prepare(list []candidate) ([]candidate, error) {
	i := slices.IndexFunc(list, call.foreign)
	if i < 0 {
		return list, nil
	}
	err := call.translate(list[i])
	if err == nil {
		return list, nil
	}
	own := slices.DeleteFunc(slices.Clone(list), call.foreign)
	if len(own) == 0 {
		return nil, err
	}
	return own, nil
}

// foreign tells whether a call has to be said in another form for a candidate.
func (call *call) foreign(c candidate) bool { return c.in != call.form.wire && !call.counts(c) }

// target is whom a call is translated for.
type target struct {
	messages wire.ToMessages
	chat     wire.ToChat
}

// translate makes the call ready to be sent to a candidate that takes another
// form.
func (call *call) translate(c candidate) (err error) {
	to := target{wire.ToMessages{MaxTokens: c.atMost(cmp.Or(call.ceiling, messageTokens)), Model: c.model}, toChat(c)}
	if !call.foreign(c) || call.translated != nil && call.translatedFor == to {
		return nil
	}
	var b []byte
	if c.in == wire.Messages {
		b, err = wire.ChatToMessages(call.body, to.messages)
	} else {
		b, err = wire.MessagesToChat(call.body, to.chat)
	}
	if err != nil {
		return err
	}
	call.translatedFor = to
	call.translated, err = jsonbody.ParseObject(b)
	return err
}

// messageTokens is the ceiling of the output where a chat completion states
// none: Anthropic's form demands one.
const messageTokens = 4096

// toChat is what a provider of chat completions takes that others don't.
func toChat(c candidate) wire.ToChat {
	vendor := c.Vendor.Slug
	return wire.ToChat{
		MaxTokens:     vendor != "openai" && vendor != "azure-openai",
		Effort:        reasons(c.model),
		FixedSampling: reasons(c.model) && (vendor == "openai" || vendor == "azure-openai"),
		CacheControl:  vendor == "openrouter",
		NoUser:        vendor == "mistral",
	}
}

// reasons tells whether a model takes reasoning_effort, by its name.
func reasons(model string) bool {
	model = model[strings.LastIndexByte(model, '/')+1:]
	return slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-oss"}, func(p string) bool { return strings.HasPrefix(model, p) })
}

// forward is the call as a provider gets it: what was validated, for its model,
// with the usage frame of a stream always asked for. Nothing of the client's own
// headers goes along but Anthropic's version and betas.
func (call *call) forward(c candidate) (body []byte, h http.Header, err error) {
	h = upstreamHeaders(call.stream)
	if call.parts != nil {
		body, contentType, err := call.parts.bytes(c.model)
		h.Set(echo.HeaderContentType, contentType)
		return body, h, err
	}
	o := call.body
	if c.in != call.form.wire {
		if err := call.translate(c); err != nil {
			return nil, nil, err
		}
		o = call.translated
	}
	o.Set("model", quoted(c.model))
	call.setCeiling(o, c)
	if call.stream && (c.in == wire.Chat || c.in == wire.Completions) {
		if err := askForUsage(o, c); err != nil {
			return nil, nil, err
		}
	}
	if formAt(c.in).anthropic() {
		if call.version != "" {
			h.Set("Anthropic-Version", call.version)
		}
		for _, b := range call.beta {
			h.Add("Anthropic-Beta", b)
		}
	}
	return o.Bytes(), h, nil
}

// askForUsage asks for the usage frame of a stream. Mistral always sends one,
// and refuses to be asked.
func askForUsage(o *jsonbody.Object, c candidate) error {
	options, err := o.Object("stream_options")
	if err != nil {
		return err
	}
	if c.Endpoint.Vendor().Slug == "mistral" {
		if options != nil {
			o.Set("stream_options", jsontext.Value("{}"))
		}
		return nil
	}
	if options == nil {
		options = &jsonbody.Object{}
	}
	options.Set("include_usage", jsontext.Value("true"))
	o.Set("stream_options", options.Bytes())
	return nil
}

// answer is a provider's answer in the client's form.
func (call *call) answer(in wire.Form, body []byte, k *caller, took limits.Tokens, now time.Time) ([]byte, error) {
	o := wire.AnswerOptions{Tokens: &took, ID: k.requestID(), Model: call.model, Created: now.Unix()}
	switch in {
	case call.form.wire:
		return body, nil
	case wire.Messages:
		return wire.MessagesToChatAnswer(body, o)
	}
	return wire.ChatToMessagesAnswer(body, o)
}

func (call *call) streamOptions(k *caller, now time.Time) wire.StreamOptions {
	return wire.StreamOptions{WantUsage: call.wantUsage, Choices: call.choices, ID: k.requestID(), Model: call.model, Created: now.Unix()}
}

// counts tells whether the tokens of a call are counted here, since the
// provider does not.
func (call *call) counts(c candidate) bool {
	return call.form.wire == wire.CountTokens && !c.Endpoint.Provider.Serves(call.form.path)
}

// asksApart is in what class of service a call asks a candidate to serve it, and
// whether it asks for something else that is not served at the usual price.
func (call *call) asksApart(c candidate) (tier wire.Tier, apart bool) {
	o := call.body
	if c.in != call.form.wire {
		o = call.translated
	}
	if o == nil {
		return "", false
	}
	asked := func(name string) (s string) {
		if v := o.Get(name); v != nil && v.Kind() == '"' {
			_ = json.Unmarshal(v, &s) // a string, as its kind says
		}
		return s
	}
	speed, geo := asked("speed"), asked("inference_geo")
	return wire.Tier(asked("service_tier")), c.in == wire.Messages && (speed != "" && speed != "standard" || geo != "" && geo != "global")
}

// costs notes what an answer says of how it was served: a tier that it states
// stands before the one that was asked for.
func (t *try) costs(apart bool, tier wire.Tier) {
	if t.apart = t.apart || apart; tier != "" {
		t.tier = tier
	}
}
