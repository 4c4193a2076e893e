package gateway

import (
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/jsonbody"
	"weir/internal/usage"
)

// bodyLimit is the largest request body: room for a few images in base64.
const bodyLimit = 32 << 20

// maxChoices is the most answers that one call may ask for.
const maxChoices = 128

// chatCall is a chat completion as it was asked for.
type chatCall struct {
	body      *jsonbody.Object
	model     string
	stream    bool
	wantUsage bool  // the client asked for the usage frame itself
	choices   int64 // how many answers are asked for
	maxOutput int64 // for all choices together; −1: not stated
	endUser   string
	tags      map[string]string
}

// steering are members with which a call would choose its way or credential.
var steering = []string{"api_base", "base_url", "api_key"}

// parseChat reads and checks a chat completion. What Weir does not know passes
// through untouched; what could make Weir and the provider see different calls
// is refused.
func parseChat(c echo.Context) (chatCall, error) {
	var call chatCall
	r := c.Request()
	if enc := r.Header.Get(echo.HeaderContentEncoding); enc != "" {
		return call, fault.New(fault.Unsupported, "unsupported_encoding", "A compressed body is not read; send it plain.")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil || media != echo.MIMEApplicationJSON {
		return call, fault.New(fault.Unsupported, "unsupported_media_type", "Send the body as JSON, with Content-Type: application/json.")
	}
	raw, err := jsonbody.Read(r.Body, bodyLimit)
	if err != nil {
		return call, err
	}
	if call.body, err = jsonbody.ParseObject(raw); err != nil {
		return call, err
	}
	for _, name := range call.body.Names() {
		if slices.Contains(steering, strings.ToLower(name)) {
			return call, jsonbody.Field("/"+name, "unsupported_parameter", "Where a call goes and with which credential is not the caller's to say; leave "+name+" out.")
		}
	}
	if call.model, err = modelOf(call.body); err != nil {
		return call, err
	}
	if m := call.body.Get("messages"); m == nil || m.Kind() != '[' {
		return call, jsonbody.Field("/messages", "wrong_type", "messages must be a list of messages.")
	}
	if err := call.readOptions(); err != nil {
		return call, err
	}
	return call, call.readLabels(r.Header.Get("x-weir-tags"))
}

func modelOf(o *jsonbody.Object) (string, error) {
	v := o.Get("model")
	if v == nil || v.Kind() == 'n' {
		return "", jsonbody.Field("/model", "missing_required_parameter", "A model is needed.")
	}
	var model string
	if err := json.Unmarshal(v, &model); err != nil {
		return "", jsonbody.Field("/model", "wrong_type", "model must be a string.")
	}
	if !catalogue.ValidModel(model) {
		return "", unknownModel(model)
	}
	return model, nil
}

func unknownModel(model string) error {
	if !catalogue.ValidModel(model) || keyLike.MatchString(model) {
		model = "with this name"
	}
	return fault.New(fault.NotFound, "model_not_found", "There is no model "+model+" for this key. GET /v1/models lists what there is.").
		With(fault.Field{Pointer: "/model", Code: "model_not_found", Message: "There is no such model."})
}

func (call *chatCall) readOptions() (err error) {
	if call.stream, err = boolean(call.body, "stream", "/stream"); err != nil {
		return err
	}
	options, err := call.body.Object("stream_options")
	if err != nil {
		return err
	}
	if options != nil {
		if call.wantUsage, err = boolean(options, "include_usage", "/stream_options/include_usage"); err != nil {
			return err
		}
	}
	n, err := whole(call.body, "n", 1, maxChoices)
	if err != nil {
		return err
	}
	call.maxOutput, call.choices = -1, max(n, 1)
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		most, err := whole(call.body, name, 1, 1_000_000_000)
		if err != nil {
			return err
		}
		call.maxOutput = max(call.maxOutput, most)
	}
	if call.maxOutput > 0 && n > 0 {
		call.maxOutput *= n
	}
	if call.maxOutput > 1_000_000_000 {
		return jsonbody.Field("/n", "out_of_range", "n times the output ceiling is more than any model can write.")
	}
	return nil
}

func boolean(o *jsonbody.Object, name, pointer string) (b bool, err error) {
	v := o.Get(name)
	if v == nil || v.Kind() == 'n' {
		return false, nil
	}
	if err := json.Unmarshal(v, &b); err != nil {
		return false, jsonbody.Field(pointer, "wrong_type", name+" must be true or false.")
	}
	return b, nil
}

// whole reads a whole number of a range; −1 where it is absent or null. 1e2 and
// "5" are no whole numbers here: an upstream might read them differently.
func whole(o *jsonbody.Object, name string, least, most int64) (int64, error) {
	v := o.Get(name)
	if v == nil || v.Kind() == 'n' {
		return -1, nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || v.Kind() != '0' || n < least || n > most {
		return 0, jsonbody.Field("/"+name, "out_of_range", name+" must be a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10)+".")
	}
	return n, nil
}

// readLabels takes the end user and the tags that the call states about itself.
func (call *chatCall) readLabels(header string) error {
	for _, name := range []string{"safety_identifier", "user"} {
		if v := call.body.Get(name); v != nil && v.Kind() == '"' && call.endUser == "" {
			_ = json.Unmarshal(v, &call.endUser) // a string, as its kind says
			call.endUser = strings.ToValidUTF8(call.endUser[:min(len(call.endUser), usage.MaxLabel)], "")
		}
	}
	call.tags = map[string]string{}
	if header == "" {
		call.tagsFromMetadata()
	} else {
		for pair := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			call.tags[name] = value
		}
	}
	if wrong := usage.CheckLabels(call.endUser, call.tags); len(wrong) > 0 {
		for i := range wrong {
			wrong[i].Pointer = map[string]string{"/end_user": "/user", "/tags": "/metadata"}[wrong[i].Pointer]
		}
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// tagsFromMetadata takes what of OpenAI's metadata can be tags: the first eight
// that fit. Metadata is the provider's to judge; it never makes a call fail.
func (call *chatCall) tagsFromMetadata() {
	v := call.body.Get("metadata")
	o, err := call.body.Object("metadata")
	if err != nil || v == nil || o == nil {
		return
	}
	for _, name := range o.Names() {
		var value string
		if json.Unmarshal(o.Get(name), &value) != nil || len(usage.CheckLabels("", map[string]string{name: value})) > 0 {
			continue
		}
		if len(call.tags) < 8 {
			call.tags[name] = value
		}
	}
}

// forward is the body as the provider gets it: what was validated, with the
// usage frame of a stream always asked for.
func (call *chatCall) forward() []byte {
	if !call.stream {
		return call.body.Bytes()
	}
	options, _ := call.body.Object("stream_options") // read before
	if options == nil {
		options = &jsonbody.Object{}
	}
	options.Set("include_usage", jsontext.Value("true"))
	call.body.Set("stream_options", options.Bytes())
	return call.body.Bytes()
}
