package gateway

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/internal/catalogue"
)

// reportedIn is the model that an event of a stream says that it is of: a chunk
// of OpenAI's, the beginning of a message, a response. "": it says none.
func reportedIn(event []byte) string {
	var e struct {
		Model   string `json:"model"`
		Message struct {
			Model string `json:"model"`
		} `json:"message"`
		Response struct {
			Model string `json:"model"`
		} `json:"response"`
	}
	_ = json.Unmarshal(event, &e, lenient) // what cannot be read says none
	for _, m := range []string{e.Model, e.Message.Model, e.Response.Model} {
		if m != "" {
			return m
		}
	}
	return ""
}

// another is the model that a provider says it served, where that is not the one
// that it was asked for: "" where it is, or is a dated version of it, or says
// nothing that could be a model's name.
func another(asked, reported string) string {
	if !catalogue.ValidModel(reported) || keyLike.MatchString(reported) {
		return ""
	}
	a, r := bare(asked), bare(reported)
	if len(a) > len(r) {
		a, r = r, a
	}
	if rest, same := strings.CutPrefix(r, a); same && versioned.MatchString(rest) {
		return ""
	}
	return reported
}

// versioned is what a name has more where it means a version or build of the
// same model.
var versioned = regexp.MustCompile(`^([-@:.](\d{2,8}|v\d+|latest|preview|instruct|it|exp|beta|free|fp8|hf))*$`)

// bare is a name without its vendor and in one case.
func bare(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}
