package gateway

import (
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/keyring"
)

// keyLike is what looks like somebody's credential in a provider's words; some
// providers echo a part of it.
var keyLike = regexp.MustCompile(`\b(sk|pk|rk|gsk|xai|csk|key|org|weir|AIza|Bearer)[-_ ]?[A-Za-z0-9_*\-.]{8,}`)

// messageOf is the message in a provider's error body, or a word of our own
// where it has none, with every credential replaced.
func messageOf(body []byte, secret keyring.Secret) string {
	var e struct {
		Error jsontext.Value `json:"error"`
	}
	message := "it gave no reason"
	if json.Unmarshal(body, &e, lenient) == nil && present(e.Error) {
		var object struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &object, lenient) == nil && object.Message != "" {
			message = object.Message
		} else {
			_ = json.Unmarshal(e.Error, &message, lenient) // some send a bare string
		}
	}
	return scrubbed(message, secret)
}

// scrubbed is a provider's text without credentials, and of a bounded length.
func scrubbed(text string, secret keyring.Secret) string {
	text = keyLike.ReplaceAllString(secret.Scrub(text), "[redacted]")
	return text[:min(len(text), 2000)]
}

func relayedBody(body []byte, message string, secret keyring.Secret) openAIErrorBody {
	var e struct {
		Error struct {
			Type  string  `json:"type"`
			Param *string `json:"param"`
			Code  any     `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e, lenient) // what is not there stays empty
	out := openAIErrorBody{Message: message, Type: "invalid_request_error"}
	if e.Error.Type != "" {
		out.Type = scrubbed(e.Error.Type, secret)
	}
	if e.Error.Param != nil {
		param := scrubbed(*e.Error.Param, secret)
		out.Param = &param
	}
	if code, ok := e.Error.Code.(string); ok {
		code = scrubbed(code, secret)
		out.Code = &code
	}
	return out
}
