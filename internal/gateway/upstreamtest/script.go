package upstreamtest

import (
	"net/http"
	"strings"
	"time"

	"weir/internal/catalogue/mimic"
)

// Script is how one call is answered. The zero Script is an honest answer; each
// field that is set bends it.
type Script struct {
	Status int             // 0: 200
	Header http.Header     // added to the answer's
	Body   string          // the whole body, instead of an honest one
	Delay  time.Duration   // before the first byte
	Hang   bool            // no byte ever comes, until the caller leaves
	Wait   <-chan struct{} // the first byte comes once this is closed
	Gzip   bool            // a whole answer comes compressed, whether or not that was asked for

	Words []string      // of the answer; nil: a few
	Usage string        // the usage object; "": the honest one; or Absent, Zero, Nonsense
	Used  *mimic.Counts // the honest usage object of these figures, where Usage is ""
	Tool  string        // is called, whether or not the call demands one

	// After so many steps of a stream, or in the middle of any other answer where
	// it is not 0, the connection breaks, or nothing comes any more until the caller
	// leaves. The steps are, on every route: the opening, one for each word, the
	// finish, and the usage where it has one of its own.
	Cut, Stall int

	// Of a stream:
	Fails   string        // it ends with this error after its words
	Events  []string      // payloads, each a step, instead of the honest events
	EndLine string        // "": LF
	Pause   time.Duration // before each step
	NoDone  bool          // it ends without its last word, such as [DONE]

	echo    string // what the body's %KEY% stands for is the credential that came
	message string // of an error in the words of the route's vendor
}

// What a Usage may be instead of an object.
const (
	Absent   = "absent"   // not stated
	Zero     = "zero"     // every figure of it is 0
	Nonsense = "nonsense" // its figures are below 0
)

// usage is the object that the answer states; "" for none.
func (s Script) usage(c mimic.Call, honest string) string {
	switch s.Usage {
	case "":
		if s.Used != nil {
			return mimic.Usage(c.Route, *s.Used)
		}
		return honest
	case Absent:
		return ""
	case Zero:
		return mimic.Usage(c.Route, mimic.Counts{})
	case Nonsense:
		return mimic.Usage(c.Route, mimic.Counts{Input: -1, Output: -6})
	}
	return s.Usage
}

// Prompt is what the honest provider counts for texts as JSON: the contents of
// messages, a system text, inputs.
func Prompt(contents ...string) int { return mimic.Tokens(contents...) }

// Redirect sends the caller elsewhere.
func Redirect(to string) Script {
	return Script{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}, Body: " "}
}

// NotJSON answers 200 with something that is no JSON.
func NotJSON() Script { return Script{Body: "<html>Bad gateway</html>"} }

// HugeLine is a stream with a line of n bytes.
func HugeLine(n int) Script { return Script{Words: []string{strings.Repeat("x", n)}} }

// ErrorEvent is a stream that says after one word that it failed, as its route
// says that.
func ErrorEvent() Script {
	return Script{Words: []string{"Half"}, Fails: "The server had an error while processing your request"}
}

// Telling is an honest answer with what providers send beside it, and no client
// of another may see: cookies, organisations, and the state of their limits.
func Telling() Script {
	return Script{Header: http.Header{
		"Set-Cookie":                             {"__cf_bm=secret; path=/; HttpOnly"},
		"Openai-Organization":                    {"org-upstream"},
		"Openai-Project":                         {"proj_upstream"},
		"Anthropic-Organization-Id":              {"00000000-upstream"},
		"X-Request-Id":                           {"req_upstream"},
		"Request-Id":                             {"req_upstream"},
		"X-Ratelimit-Limit-Requests":             {"10000"},
		"X-Ratelimit-Remaining-Requests":         {"9999"},
		"X-Ratelimit-Reset-Requests":             {"6ms"},
		"Anthropic-Ratelimit-Requests-Limit":     {"4000"},
		"Anthropic-Ratelimit-Requests-Remaining": {"3999"},
		"Anthropic-Ratelimit-Requests-Reset":     {"2035-01-01T00:00:00Z"},
		"Anthropic-Ratelimit-Input-Tokens-Limit": {"400000"},
		"Ratelimit":                              {`"upstream";r=1;t=9`},
		"Strict-Transport-Security":              {"max-age=31536000"},
		"Alt-Svc":                                {`h3=":443"`},
		"Access-Control-Allow-Origin":            {"https://upstream.example"},
		"Content-Security-Policy":                {"default-src 'none'"},
		"Www-Authenticate":                       {"Bearer"},
	}}
}

// HugeHeader is an honest answer with a header of n bytes.
func HugeHeader(n int) Script {
	return Script{Header: http.Header{"X-Padding": {strings.Repeat("x", n)}}}
}
