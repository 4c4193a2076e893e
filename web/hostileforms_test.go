package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/internal/limits"
)

func TestNoTextInAFormOfQuotesIsOurFaultOrRunsOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	texts := []string{
		"\x00", "a\x00b", "\xff\xfe", "a\r\nBcc: b@x.example", "\u202egnp.exe", "\u2066a", "\u2028", `<script>alert(1)</script>`, `" autofocus onfocus=alert(1) x="`, `=cmd|'/C calc'!A0`,
		"{{link}}", "javascript:alert(1)", strings.Repeat("a", 3000), strings.Repeat("😀", 199), "-1", "1e9", "99999999999999999999999", "NaN", "٣", "1,2,3", " ", "2026-02-30", "9999-12-31", "0000-00-00",
	}
	for name := range quoteForm(plan) {
		for _, text := range texts {
			a := s.post("/quotes", session, changed(quoteForm(plan), name, text))
			if a.status >= 500 {
				t.Errorf("%s is %.40q: %d", name, text, a.status)
			}
			a.hasNot(t, "<script>alert", `" autofocus onfocus`)
			if a.status == http.StatusSeeOther {
				page := s.get(pathOf(t, a.header.Get("Location")), session)
				if page.status != http.StatusOK {
					t.Errorf("%s is %.40q, and its page: %d", name, text, page.status)
				}
				page.hasNot(t, "<script>alert", `" autofocus onfocus`)
			}
		}
	}
	for _, q := range []string{"?q=%00", "?q=%25%25%25", "?status=x", "?after=%00", "?version=99999999999", "?version=-1", "?version=%00"} {
		if a := s.get("/quotes"+q, session); a.status >= 500 {
			t.Errorf("/quotes%s: %d", q, a.status)
		}
	}
	path, public := s.quoted(session, plan)
	for _, q := range []string{"?version=99999999999", "?version=-1", "?version=%00", "?version=2"} {
		for _, of := range []string{path, path + "/edit", public} {
			if a := s.get(of+q, session); a.status >= 500 {
				t.Errorf("%s%s: %d", of, q, a.status)
			}
		}
	}
	for _, text := range texts {
		for what, form := range map[string]url.Values{
			path + "/send":      {"reason": {text}},
			public + "/decline": {"version": {text}, "reason": {text}},
			public + "/accept":  {"version": {text}, "name": {text}, "email": {text}, "agreed": {"true"}},
		} {
			if a := s.post(what, session, form); a.status >= 500 {
				t.Errorf("%s with %.40q: %d", what, text, a.status)
			}
		}
	}
	s.get(public, "").has(t, "Accept this quote")
}
