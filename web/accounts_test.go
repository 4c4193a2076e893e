package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

const localSite = "http://localhost:8080"

var mailedLink = regexp.MustCompile(`http://localhost:8080(/(?:confirm|reset)/)([A-Za-z0-9_-]{43})`)

// mailed is the token in the newest mail, once there are n.
func (s site) mailed(n int) (path, token string) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(s.outbox.Messages()) < n {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d mails, not %d", len(s.outbox.Messages()), n)
		}
		time.Sleep(time.Millisecond)
	}
	m := mailedLink.FindStringSubmatch(s.outbox.Messages()[0].Text)
	if m == nil {
		s.t.Fatalf("no link in %q", s.outbox.Messages()[0].Text)
	}
	return m[1] + m[2], m[2]
}

func signUpForm() url.Values {
	return url.Values{"name": {"Ann"}, "email": {"ann@acme.example"}, "password": {"a good long phrase"}, "tenant": {"Acme"}, "zone": {"Europe/Berlin"}}
}

// session is the cookie that an answer gave.
func (a answer) session(s site) string {
	s.t.Helper()
	return a.cookie(s.t, s.cookie).Value
}

func TestAPersonSignsUpByMailAndIsIn(t *testing.T) {
	s := newSite(t, localSite)
	a := s.post("/sign-up", "", signUpForm())
	if a.status != http.StatusOK || !strings.Contains(a.body, "ann@acme.example") || strings.Contains(a.body, "a good long phrase") {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	path, token := s.mailed(1)
	before := s.fingerprint()
	if a := s.get(path, ""); a.status != http.StatusOK || s.fingerprint() != before {
		t.Fatalf("opening the link alone: %d, and something changed: %t", a.status, s.fingerprint() != before)
	}
	a = s.post("/confirm", "", url.Values{"token": {token}})
	if a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if home := s.get("/", a.session(s)); home.status != http.StatusOK || !strings.Contains(home.body, "Acme") || !strings.Contains(home.body, "Europe/Berlin") {
		t.Fatalf("home: %d", home.status)
	}
	if again := s.post("/confirm", "", url.Values{"token": {token}}); again.status != http.StatusUnauthorized {
		t.Fatalf("the link a second time: %d", again.status)
	}
	in := s.post("/sign-in", "", url.Values{"email": {"Ann@acme.example"}, "password": {"a good long phrase"}})
	if in.status != http.StatusSeeOther {
		t.Fatalf("signing in: %d %s", in.status, in.body)
	}
}

func TestASignUpThatIsNotRightKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	s := newSite(t, localSite)
	f := signUpForm()
	f.Set("password", "short")
	f.Set("zone", "Mars/Base")
	a := s.post("/sign-up", "", f)
	if a.status != http.StatusBadRequest || len(s.outbox.Messages()) != 0 {
		t.Fatalf("got %d, %d mails", a.status, len(s.outbox.Messages()))
	}
	for _, want := range []string{`value="Ann"`, `value="ann@acme.example"`, `value="Acme"`, `value="Mars/Base"`, `href="#f-password"`, `href="#f-zone"`, "At least 10 characters"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("missing %s", want)
		}
	}
	if strings.Contains(a.body, `value="short"`) {
		t.Error("the password came back in the page")
	}
}

func TestSignInTellsNobodyWhichAddressesAreKnown(t *testing.T) {
	s := newSite(t, localSite)
	s.post("/sign-up", "", signUpForm())
	_, token := s.mailed(1)
	s.post("/confirm", "", url.Values{"token": {token}})
	strip := func(b string) string {
		return strings.NewReplacer("ann@acme.example", "X", "bob@acme.example", "X").Replace(b)
	}
	for path, form := range map[string]url.Values{
		"/sign-in": {"password": {"not this phrase"}},
		"/forgot":  {},
		"/sign-up": signUpForm(),
	} {
		known, unknown := url.Values{}, url.Values{}
		for k, v := range form {
			known[k], unknown[k] = v, v
		}
		known.Set("email", "ann@acme.example")
		unknown.Set("email", "bob@acme.example")
		a, b := s.post(path, "", known), s.post(path, "", unknown)
		if a.status != b.status || strip(a.body) != strip(b.body) {
			t.Errorf("%s tells them apart: %d and %d", path, a.status, b.status)
		}
	}
}

func TestAForgottenPasswordIsSetByItsMailOnce(t *testing.T) {
	s := newSite(t, localSite)
	s.post("/sign-up", "", signUpForm())
	_, token := s.mailed(1)
	first := s.post("/confirm", "", url.Values{"token": {token}}).session(s)
	s.post("/forgot", "", url.Values{"email": {"ann@acme.example"}})
	path, token := s.mailed(2)
	if a := s.get(path, ""); a.status != http.StatusOK {
		t.Fatalf("the link's page: %d", a.status)
	}
	if a := s.post("/reset", "", url.Values{"token": {token}, "password": {"short"}}); a.status != http.StatusBadRequest || !strings.Contains(a.body, token) {
		t.Fatalf("a short one: %d", a.status)
	}
	a := s.post("/reset", "", url.Values{"token": {token}, "password": {"quite another phrase"}})
	if a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if home := s.get("/", a.session(s)); home.status != http.StatusOK {
		t.Fatalf("home: %d", home.status)
	}
	if old := s.get("/", first); old.status != http.StatusSeeOther {
		t.Fatalf("the session of before: %d", old.status)
	}
	if again := s.post("/reset", "", url.Values{"token": {token}, "password": {"quite another phrase"}}); again.status != http.StatusUnauthorized {
		t.Fatalf("the link again: %d", again.status)
	}
}

func TestTheOutboxShowsMailWithItsLinks(t *testing.T) {
	s := newSite(t, localSite)
	s.post("/sign-up", "", signUpForm())
	path, _ := s.mailed(1)
	if a := s.get("/dev/outbox", ""); a.status != http.StatusOK || !strings.Contains(a.body, `href="`+localSite+path+`"`) {
		t.Fatalf("got %d %s", a.status, a.body)
	}
}
