package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/notify"
)

// door is what the pages before sign-in have to know of this installation.
type door struct {
	SignUp bool // people may sign up by themselves
	Mail   bool // a forgotten password can be mended by mail
	Outbox bool // mail is shown here, not sent: development
}

func (p *Pages) door() door {
	return door{SignUp: p.ownSignUp && p.accounts.CanMail(), Mail: p.accounts.CanMail(), Outbox: p.outbox != nil}
}

func (p *Pages) mountAccounts(e *echo.Echo) {
	p.get(e, "/sign-up", p.signUpPage)
	p.post(e, "/sign-up", p.signUp)
	p.get(e, "/confirm/:token", p.confirmPage)
	p.post(e, "/confirm", p.confirm)
	p.get(e, "/forgot", p.forgotPage)
	p.post(e, "/forgot", p.forgot)
	p.get(e, "/reset/:token", p.resetPage)
	p.post(e, "/reset", p.reset)
	if p.outbox != nil {
		p.get(e, "/dev/outbox", p.outboxPage)
	}
}

func (p *Pages) signUpPage(c echo.Context) error {
	if !p.door().SignUp {
		return show(c, http.StatusForbidden, signUpClosedView(p.door()))
	}
	return show(c, http.StatusOK, signUpView(form{Values: map[string][]string{"zone": {""}}}))
}

func (p *Pages) signUp(c echo.Context) error {
	if !p.door().SignUp {
		return show(c, http.StatusForbidden, signUpClosedView(p.door()))
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	err = p.accounts.SignUp(c.Request().Context(), auth.NewAccount{
		Name: f.Get("name"), Email: f.Get("email"), Password: f.Get("password"), Tenant: f.Get("tenant"), Zone: f.Get("zone"), IP: c.RealIP(),
	})
	if err != nil {
		status, err := f.refuseEntry(err)
		if err != nil {
			return err
		}
		return show(c, status, signUpView(f))
	}
	return show(c, http.StatusOK, mailSentView(p.door(), strings.TrimSpace(f.Get("email")), "It holds the link that makes your account, good for 24 hours."))
}

// refuseEntry is refuse, for forms before sign-in: a person who tries too often
// is told at the form, too.
func (f *form) refuseEntry(err error) (int, error) {
	if e := fault.Of(err); e.Kind == fault.Limited || e.Kind == fault.Unauthenticated {
		f.wrong("", e.Message)
		return statuses[e.Kind], nil
	}
	return f.refuse(err)
}

func (p *Pages) confirmPage(c echo.Context) error {
	if !wellFormed(c.Param("token")) {
		return show(c, http.StatusUnauthorized, deadMailLinkView(p.door()))
	}
	return show(c, http.StatusOK, confirmAddressView(c.Param("token")))
}

func (p *Pages) confirm(c echo.Context) error {
	r := c.Request()
	issued, err := p.accounts.Confirm(r.Context(), r.PostFormValue("token"), browserOf(r), c.RealIP())
	if fault.Is(err, fault.Unauthenticated) {
		return show(c, http.StatusUnauthorized, deadMailLinkView(p.door()))
	}
	if err != nil {
		return err
	}
	return p.enterAt(c, issued, "/setup")
}

// passwordSignIn is signIn for who has typed a password.
func (p *Pages) passwordSignIn(c echo.Context) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	issued, err := p.accounts.SignIn(c.Request().Context(), f.Get("email"), f.Get("password"), browserOf(c.Request()), c.RealIP())
	if err != nil {
		status, err := f.refuseEntry(err)
		if err != nil {
			return err
		}
		return show(c, status, signInView(p.door(), f, false))
	}
	return p.enterAt(c, issued, localOnly(f.Get("to")))
}

func (p *Pages) enter(c echo.Context, issued auth.Issued) error { return p.enterAt(c, issued, "/") }

// enterAt gives the browser its session, and leads it to a page. A session that
// it had before ends.
func (p *Pages) enterAt(c echo.Context, issued auth.Issued, path string) error {
	p.cookie.set(c, issued.Token, issued.ExpiresAt, p.now())
	if before := p.cookie.token(c.Request()); before != "" {
		if err := p.sessions.SignOut(c.Request().Context(), before); err != nil {
			return err
		}
	}
	return c.Redirect(http.StatusSeeOther, path)
}

func browserOf(r *http.Request) string { return strings.ToValidUTF8(r.UserAgent(), "\ufffd") }

func (p *Pages) forgotPage(c echo.Context) error {
	return show(c, http.StatusOK, forgotView(p.door(), form{Values: map[string][]string{}}))
}

func (p *Pages) forgot(c echo.Context) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	if err := p.accounts.ForgotPassword(c.Request().Context(), f.Get("email"), c.RealIP()); err != nil {
		status, err := f.refuseEntry(err)
		if err != nil {
			return err
		}
		return show(c, status, forgotView(p.door(), f))
	}
	return show(c, http.StatusOK, mailSentView(p.door(), strings.TrimSpace(f.Get("email")), "If the address has an account, it holds a link that sets a new password, good for 30 minutes."))
}

func (p *Pages) resetPage(c echo.Context) error {
	if !wellFormed(c.Param("token")) {
		return show(c, http.StatusUnauthorized, deadMailLinkView(p.door()))
	}
	return show(c, http.StatusOK, resetView(form{Values: map[string][]string{"token": {c.Param("token")}}}))
}

func (p *Pages) reset(c echo.Context) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	issued, err := p.accounts.ResetPassword(c.Request().Context(), f.Get("token"), f.Get("password"), browserOf(c.Request()), c.RealIP())
	switch {
	case fault.Is(err, fault.Unauthenticated):
		return show(c, http.StatusUnauthorized, deadMailLinkView(p.door()))
	case err != nil:
		status, err := f.refuseEntry(err)
		if err != nil {
			return err
		}
		return show(c, status, resetView(f))
	}
	return p.enter(c, issued)
}

// outboxPage shows the mail that development does not send.
func (p *Pages) outboxPage(c echo.Context) error {
	var list []letter
	for _, m := range p.outbox.Messages() {
		list = append(list, letterOf(m))
	}
	return show(c, http.StatusOK, outboxView(list))
}

// letter is a mail, with its links apart so that they can be followed.
type letter struct {
	To, Subject, At string
	Lines           []letterLine
}

type letterLine struct{ Text, Link string }

func letterOf(m notify.Mail) letter {
	l := letter{To: m.To, Subject: m.Subject, At: m.At.UTC().Format("15:04:05 MST")}
	for line := range strings.SplitSeq(strings.TrimSpace(m.Text), "\n") {
		at := strings.Index(line, "http")
		if at < 0 {
			l.Lines = append(l.Lines, letterLine{Text: line})
			continue
		}
		l.Lines = append(l.Lines, letterLine{Text: line[:at], Link: strings.TrimSpace(line[at:])})
	}
	return l
}
