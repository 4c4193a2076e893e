package gateway

import (
	"mime"
	"net/http"
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

// maxOutputTokens is more than any model can write.
const maxOutputTokens = 1_000_000_000

// call is a call as it was asked for.
type call struct {
	form  *form
	body  *jsonbody.Object // nil: a form with parts
	parts *parts

	length        int64            // of the body
	translated    *jsonbody.Object // in the other form of a chat
	translatedFor target

	model        string
	stream       bool
	wantUsage    bool  // the client asked for the usage frame itself
	choices      int64 // how many answers are asked for
	answers      int64 // how many are written: more than choices where the best of them are chosen
	maxOutput    int64 // for all answers together; −1: not stated
	ceiling      int64 // of one answer, given to a call that states none; 0: none is
	endUser      string
	tags         map[string]string
	conversation string // what it says that it belongs to
	beta         []string
	version      string // of Anthropic's form
}

// steering are members with which a call would choose its way or credential.
var steering = []string{"api_base", "base_url", "api_key"}

// parse reads and checks a call. What Weir does not know passes through
// untouched; what could make Weir and the provider see different calls is
// refused. The model is known as far as it was read.
func parse(c echo.Context, f *form) (*call, error) {
	call := &call{form: f, maxOutput: -1, choices: 1, answers: 1}
	r := c.Request()
	if enc := r.Header.Get(echo.HeaderContentEncoding); enc != "" {
		return call, fault.New(fault.Unsupported, "unsupported_encoding", "A compressed body is not read; send it plain.")
	}
	if err := call.readBody(r); err != nil {
		return call, err
	}
	if err := f.read(call); err != nil {
		return call, err
	}
	return call, call.readHeaders(r.Header)
}

// readBody takes the body and the model that it names.
func (call *call) readBody(r *http.Request) (err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if call.form.input == nil {
		if err != nil || media != echo.MIMEMultipartForm {
			return fault.New(fault.Unsupported, "unsupported_media_type", "Send the audio and its options as multipart/form-data.")
		}
		if call.parts, err = readParts(r.Body, params["boundary"]); err != nil {
			return err
		}
		call.model, err = validModel(call.parts.value("model"))
		return err
	}
	if err != nil || media != echo.MIMEApplicationJSON {
		return fault.New(fault.Unsupported, "unsupported_media_type", "Send the body as JSON, with Content-Type: application/json.")
	}
	raw, err := jsonbody.Read(r.Body, bodyLimit)
	if err != nil {
		return err
	}
	call.length = int64(len(raw))
	if call.body, err = jsonbody.ParseObject(raw); err != nil {
		return err
	}
	for _, name := range call.body.Names() {
		if slices.Contains(steering, strings.ToLower(name)) {
			return steers(name)
		}
	}
	call.model, err = modelOf(call.body, call.form.model)
	return err
}

// size is about how many bytes a call holds.
func (call *call) size() (n int64) {
	if call.parts != nil {
		for _, x := range call.parts.list {
			n += int64(len(x.body))
		}
		return n
	}
	return call.length
}

func steers(name string) error {
	return jsonbody.Field("/"+name, "unsupported_parameter", "Where a call goes and with which credential is not the caller's to say; leave "+name+" out.")
}

// modelOf is the model that a call names, else the route's own.
func modelOf(o *jsonbody.Object, otherwise string) (string, error) {
	v := o.Get("model")
	if !present(v) {
		if otherwise != "" {
			return otherwise, nil
		}
		return "", jsonbody.Field("/model", "missing_required_parameter", "A model is needed.")
	}
	var model string
	if err := json.Unmarshal(v, &model); err != nil {
		return "", jsonbody.Field("/model", "wrong_type", "model must be a string.")
	}
	return validModel(model)
}

func validModel(model string) (string, error) {
	if model == "" {
		return "", jsonbody.Field("/model", "missing_required_parameter", "A model is needed.")
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

// readHeaders takes what the headers say of the call: its tags, and of
// Anthropic's form its version and betas.
func (call *call) readHeaders(h http.Header) error {
	if call.form.anthropic() {
		call.version, call.beta = h.Get("Anthropic-Version"), h.Values("Anthropic-Beta")
	}
	if said := h.Get(conversationHeader); said != "" {
		call.conversation = said
	}
	if len(call.conversation) > usage.MaxLabel {
		call.conversation = call.conversation[:usage.MaxLabel]
	}
	if tags := h.Get("X-Weir-Tags"); tags != "" {
		call.tags = map[string]string{}
		for pair := range strings.SplitSeq(tags, ",") {
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

// conversationHeader names what a call belongs to: calls of one conversation go
// to one provider key as long as that is well.
const conversationHeader = "X-Weir-Conversation"

// label reads an end user from the first of these members that is a string.
func (call *call) label(o *jsonbody.Object, names ...string) {
	for _, name := range names {
		if v := o.Get(name); v != nil && v.Kind() == '"' && call.endUser == "" {
			_ = json.Unmarshal(v, &call.endUser) // a string, as its kind says
			call.endUser = strings.ToValidUTF8(call.endUser[:min(len(call.endUser), usage.MaxLabel)], "")
		}
	}
}

// metadata takes what of OpenAI's metadata can be tags: the first eight that
// fit. Metadata is the provider's to judge; it never makes a call fail.
func (call *call) metadata() {
	o, err := call.body.Object("metadata")
	if err != nil || o == nil {
		return
	}
	call.tags = map[string]string{}
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

// list requires a member that is a list.
func list(o *jsonbody.Object, name, of string) error {
	if v := o.Get(name); v == nil || v.Kind() != '[' {
		return jsonbody.Field("/"+name, "wrong_type", name+" must be a list of "+of+".")
	}
	return nil
}

// needed requires a member that is there.
func needed(o *jsonbody.Object, name string) error {
	if v := o.Get(name); !present(v) {
		return jsonbody.Field("/"+name, "missing_required_parameter", name+" is needed.")
	}
	return nil
}

func present(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }
