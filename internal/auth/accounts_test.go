package auth_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

type people struct {
	t        *testing.T
	clock    *clock
	outbox   *notify.Outbox
	accounts *auth.Accounts
	sessions *auth.Sessions
}

func newPeople(t *testing.T) people {
	t.Helper()
	db, c := postgrestest.New(t), &clock{t: time.Now()}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s, outbox := auth.NewSessions(db.App, c.now), &notify.Outbox{}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return people{t, c, outbox, auth.NewAccounts(db.App, tenants.New(db.App, ring, nil, nil, c.now), s, outbox, "https://weir.example/", log, c.now), s}
}

var ann = auth.NewAccount{Name: "Ann", Email: "Ann@Acme.example", Password: "a good long phrase", Tenant: "Acme", Zone: "Europe/Berlin", IP: "192.0.2.1"}

var linkIn = regexp.MustCompile(`https://weir\.example/(confirm|reset)/([A-Za-z0-9_-]{43})`)

// link is the token in the newest mail, once there are n.
func (p people) link(n int) string {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(p.outbox.Messages()) < n {
		if time.Now().After(deadline) {
			p.t.Fatalf("%d mails, not %d", len(p.outbox.Messages()), n)
		}
		time.Sleep(time.Millisecond)
	}
	m := linkIn.FindStringSubmatch(p.outbox.Messages()[0].Text)
	if m == nil {
		p.t.Fatalf("no link in %q", p.outbox.Messages()[0].Text)
	}
	return m[2]
}

func (p people) signUp() auth.Issued {
	p.t.Helper()
	if err := p.accounts.SignUp(p.t.Context(), ann); err != nil {
		p.t.Fatal(err)
	}
	issued, err := p.accounts.Confirm(p.t.Context(), p.link(1), "test", "192.0.2.1")
	if err != nil {
		p.t.Fatal(err)
	}
	return issued
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func TestASignUpMakesItsTenantWhenItsMailIsOpenedOnce(t *testing.T) {
	p := newPeople(t)
	if err := p.accounts.SignUp(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if _, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", "192.0.2.1"); code(err) != "sign_in_failed" {
		t.Fatalf("before the mail was opened: %v", err)
	}
	link := p.link(1)
	won := make(chan auth.Issued, 8)
	var group sync.WaitGroup
	for range cap(won) {
		group.Go(func() {
			if issued, err := p.accounts.Confirm(t.Context(), link, "", ""); err == nil {
				won <- issued
			} else if code(err) != "token_invalid" {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Fatalf("%d confirmations", len(won))
	}
	person, err := p.sessions.Person(t.Context(), (<-won).Token)
	if err != nil || person.User.Email != "ann@acme.example" || person.User.Name != "Ann" || person.Role != "owner" || person.TenantName != "Acme" {
		t.Fatalf("got %+v, %v", person, err)
	}
	if _, err := p.accounts.SignIn(t.Context(), " ANN@acme.example ", ann.Password, "", ""); err != nil {
		t.Fatalf("sign-in: %v", err)
	}
}

func TestSigningUpWithAKnownAddressAnswersAlikeAndMailsTheOwner(t *testing.T) {
	p := newPeople(t)
	p.signUp()
	again := ann
	again.Password, again.Tenant = "another long phrase", "Second"
	if err := p.accounts.SignUp(t.Context(), again); err != nil {
		t.Fatalf("it shows: %v", err)
	}
	mail := p.outbox.Messages()[0]
	if mail.Subject != "You have a Weir account already" || mail.To != "ann@acme.example" {
		t.Fatalf("got %+v", mail)
	}
	if _, err := p.accounts.Confirm(t.Context(), p.link(2), "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.accounts.SignIn(t.Context(), ann.Email, again.Password, "", ""); code(err) != "sign_in_failed" {
		t.Fatalf("a second sign-up changed the password: %v", err)
	}
	if _, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", ""); err != nil {
		t.Fatal(err)
	}
}

func TestGuessingIsSlowedByAccountAndByNetworkAndLocksNobodyOut(t *testing.T) {
	p := newPeople(t)
	session := p.signUp().Token
	for i := range 10 {
		if _, err := p.accounts.SignIn(t.Context(), ann.Email, "wrong wrong wrong", "", fmt.Sprintf("198.51.%d.1", i)); code(err) != "sign_in_failed" {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	_, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", "203.0.113.1")
	if f := fault.Of(err); f == nil || f.Kind != fault.Limited || f.RetryAfter <= 0 || f.RetryAfter > 15*time.Minute {
		t.Fatalf("the account: %v", err)
	}
	if _, err := p.sessions.Person(t.Context(), session); err != nil {
		t.Fatalf("a session that exists: %v", err)
	}
	for i := range 10 {
		if _, err := p.accounts.SignIn(t.Context(), fmt.Sprintf("x%d@acme.example", i), "wrong wrong wrong", "", fmt.Sprintf("2001:db8:1:2::%d", i)); code(err) != "sign_in_failed" {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if _, err := p.accounts.SignIn(t.Context(), "y@acme.example", "wrong wrong wrong", "", "2001:db8:1:2:9::1"); code(err) != "too_many_attempts" {
		t.Fatalf("the network: %v", err)
	}
	if err := p.accounts.ForgotPassword(t.Context(), ann.Email, "2001:db8:1:2:9::1"); err != nil {
		t.Fatalf("what the refusal says to do instead: %v", err)
	}
	p.clock.advance(15 * time.Minute)
	if _, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", "203.0.113.1"); err != nil {
		t.Fatalf("a quarter of an hour later: %v", err)
	}
}

func TestAResetLinkWorksOnceAndEndsEverySession(t *testing.T) {
	p := newPeople(t)
	session := p.signUp().Token
	if err := p.accounts.ForgotPassword(t.Context(), "nobody@acme.example", "192.0.2.9"); err != nil {
		t.Fatalf("an unknown address shows: %v", err)
	}
	if err := p.accounts.ForgotPassword(t.Context(), ann.Email, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	old := p.link(2)
	if err := p.accounts.ForgotPassword(t.Context(), ann.Email, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	link := p.link(3)
	if _, err := p.accounts.ResetPassword(t.Context(), link, "short", "", ""); code(err) != "invalid_fields" {
		t.Fatalf("a short one: %v", err)
	}
	const next = "quite another phrase"
	if _, err := p.accounts.ResetPassword(t.Context(), link, next, "", ""); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]string{"the same link": link, "the older link": old} {
		if _, err := p.accounts.ResetPassword(t.Context(), l, next, "", ""); code(err) != "token_invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.sessions.Person(t.Context(), session); code(err) != "session_ended" {
		t.Errorf("the session of before: %v", err)
	}
	if _, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", ""); code(err) != "sign_in_failed" {
		t.Errorf("the old password: %v", err)
	}
	p.newest(4, "Your password was changed")
}

// newest waits for n mails, the newest with this subject.
func (p people) newest(n int, subject string) {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(p.outbox.Messages()) < n && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if m := p.outbox.Messages(); len(m) != n || m[0].Subject != subject {
		p.t.Fatalf("%d mails, the newest %+v", len(m), m[0])
	}
}

func TestLinksEnd(t *testing.T) {
	p := newPeople(t)
	if err := p.accounts.SignUp(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	p.clock.advance(auth.SignUpLifetime)
	if _, err := p.accounts.Confirm(t.Context(), p.link(1), "", ""); code(err) != "token_invalid" {
		t.Fatalf("got %v", err)
	}
}

func TestAChangedPasswordEndsTheOtherSessionsOnly(t *testing.T) {
	p := newPeople(t)
	other := p.signUp().Token
	mine, err := p.accounts.SignIn(t.Context(), ann.Email, ann.Password, "", "")
	if err != nil {
		t.Fatal(err)
	}
	person, err := p.sessions.Person(t.Context(), mine.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.accounts.ChangePassword(t.Context(), person, "not this one!", "quite another phrase"); fault.Of(err) == nil || fault.Of(err).Fields[0].Pointer != "/current" {
		t.Fatalf("got %v", err)
	}
	if err := p.accounts.ChangePassword(t.Context(), person, ann.Password, "quite another phrase"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.sessions.Person(t.Context(), other); code(err) != "session_ended" {
		t.Errorf("the other session: %v", err)
	}
	if _, err := p.sessions.Person(t.Context(), mine.Token); err != nil {
		t.Errorf("my session: %v", err)
	}
}

func TestWeakPasswordsAndWrongFieldsAreNamedAndMailNobody(t *testing.T) {
	p := newPeople(t)
	for password, want := range map[string]string{"short": "too_short", "password123": "too_common", "Qwertyuiop!": "too_common", strings.Repeat("x", 201): "too_long", "purple monkey dishwasher": "", "annabel@acme2026": "too_close"} {
		wrong := auth.CheckPassword("/password", password, "annabel@acme.example")
		if got := append(wrong, fault.Field{})[0].Code; got != want {
			t.Errorf("%q: %q, want %q", password, got, want)
		}
	}
	err := p.accounts.SignUp(t.Context(), auth.NewAccount{Email: "no", Password: "x", Zone: "Mars/Base"})
	var pointers []string
	for _, f := range fault.Of(err).Fields {
		pointers = append(pointers, f.Pointer)
	}
	if got := strings.Join(pointers, " "); got != "/name /email /password /tenant /zone" || len(p.outbox.Messages()) != 0 {
		t.Fatalf("got %s, %d mails", got, len(p.outbox.Messages()))
	}
}
