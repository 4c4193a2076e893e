package upstreamtest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Script is how one chat completion is answered. The zero Script is an honest
// answer; each field that is set bends it.
type Script struct {
	Status int             // 0: 200
	Header http.Header     // added to the answer's
	Body   string          // the whole body, instead of an honest one
	Delay  time.Duration   // before the first byte
	Hang   bool            // no byte ever comes, until the caller leaves
	Wait   <-chan struct{} // the first byte comes once this is closed

	Words []string // of the answer; nil: a few
	Usage string   // the usage object; "": the honest one; Absent: none

	// After so many events of a stream, or in the middle of any other answer
	// where it is not 0, the connection breaks, or nothing comes any more until
	// the caller leaves.
	Cut, Stall int

	// Of a stream, whose events are: role, one for each word, finish, usage.
	Events  []string      // payloads instead of the honest events
	EndLine string        // "": LF
	Pause   time.Duration // before each event
	NoDone  bool          // the stream ends without [DONE]

	echo string // what the body's %KEY% stands for is the credential that came
}

// Absent is a usage that is not stated.
const Absent = "absent"

// Fail answers with an error in OpenAI's form.
func Fail(status int, kind, code, message string) Script {
	return Script{Status: status, Body: fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)}
}

// Limited is OpenAI's 429 of a minute limit. header holds what it states of the
// wait; it may be nil.
func Limited(header http.Header) Script {
	s := Fail(http.StatusTooManyRequests, "tokens", "rate_limit_exceeded", "Rate limit reached for test-small on tokens per min (TPM). Please try again in 229ms.")
	s.Header = header
	return s
}

// Redirect sends the caller elsewhere.
func Redirect(to string) Script {
	return Script{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}, Body: " "}
}

// EchoKey answers with an error that repeats the credential it was called with,
// as some providers do.
func EchoKey(status int) Script {
	s := Fail(status, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: %KEY%. You can find your API key at https://platform.example.com.")
	s.echo = "%KEY%"
	return s
}

// ErrorInside200 answers 200 with an error in the body.
func ErrorInside200() Script {
	return Script{Body: `{"error":{"message":"Provider returned error","code":502,"metadata":{"provider_name":"x"}}}`}
}

// ErrorEvent is a stream that says after one word that it failed.
func ErrorEvent() Script {
	return Script{Events: []string{
		chunk(`{"role":"assistant"}`, ""), chunk(`{"content":"Half"}`, ""),
		`{"error":{"message":"The server had an error while processing your request","type":"server_error","code":null}}`,
	}, NoDone: true}
}

// HugeLine is a stream with a line of n bytes.
func HugeLine(n int) Script {
	return Script{Events: []string{chunk(`{"role":"assistant"}`, ""), chunk(`{"content":"`+strings.Repeat("x", n)+`"}`, "")}}
}

// NotJSON answers 200 with something that is no JSON.
func NotJSON() Script { return Script{Body: "<html>Bad gateway</html>"} }
