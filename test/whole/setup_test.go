package whole

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/test/stack"
)

// browser is somebody with a session and without a terminal.
type browser struct {
	t      *testing.T
	cookie string
}

func signedIn(t *testing.T, w stack.World) *browser {
	t.Helper()
	b := &browser{t: t}
	a := b.send("POST", "/sign-in", url.Values{"token": {filepath.Base(w.SignInLink)}})
	b.cookie, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if a.Status != 303 || b.cookie == "" {
		t.Fatalf("sign in: %s", a)
	}
	return b
}

func (b *browser) send(method, path string, form url.Values) stack.Answer {
	b.t.Helper()
	var body any
	if form != nil {
		body = form.Encode()
	}
	req, err := weir.Request(b.t.Context(), method, path, "", body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Cookie", b.cookie)
	a, err := weir.Send(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

var onceField = regexp.MustCompile(`name="once" value="([^"]+)"`)

// once is the hidden id of a step's form.
func (b *browser) once(step string) url.Values {
	b.t.Helper()
	a := b.send("GET", "/setup?step="+step, nil)
	m := onceField.FindStringSubmatch(string(a.Body))
	if m == nil {
		b.t.Fatalf("no form in the step %s: %s", step, a)
	}
	return url.Values{"once": {m[1]}}
}

func TestTheSetupSendsTheFirstCallAndTheRefusedOneByItself(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	b := signedIn(t, w)
	form := b.once("call")
	for range 2 { // sent again, it makes no second call
		if a := b.send("POST", "/setup/call", form); a.Status != 303 || a.Header.Get("Location") != "/setup?step=call" {
			t.Fatalf("the first call: %s", a)
		}
	}
	stack.Eventually(t, patience, func() string {
		if a := b.send("GET", "/setup/call", nil); !strings.Contains(string(a.Body), "The first call arrived") {
			return "the first call on the page"
		}
		return ""
	})
	a := b.send("POST", "/setup/trip", b.once("refusal"))
	if a.Status != 200 {
		t.Fatalf("the refusal: %s", a)
	}
	for _, want := range []string{
		"HTTP/1.1 <b>429</b>", "retry-after-ms: ", "retry-after: ", "x-should-retry: <b>true</b>", "x-ratelimit-limit-requests: <b>1</b>", "x-ratelimit-remaining-requests: <b>0</b>",
		"x-ratelimit-reset-requests: ", "ratelimit-policy: ", "ratelimit: ", "x-request-id: <b>req_", "rate_limit_exceeded", "Rate limit reached for practice-small",
	} {
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("missing %q", want)
		}
	}
	if regexp.MustCompile(`weir_test_[0-9A-Za-z]{36}`).Match(a.Body) {
		t.Error("the page holds the secret")
	}
}
