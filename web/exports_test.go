package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/exports"
	exact "weir/internal/money"
	"weir/internal/usage"
)

// makeExports does what the worker does.
func (s site) makeExports() {
	s.t.Helper()
	service := exports.New(s.db.App, s.tenants, usage.NewReports(s.db.App, s.clock.now), s.clock.now)
	must(s.t, exports.NewMaker(service, slog.New(slog.DiscardHandler)).Make(s.t.Context()))
}

var contentLink = regexp.MustCompile(`/exports/exp_[0-9a-z]{26}/content`)

func TestEverythingThatAPageShowsAPartOfIsMadeAsAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	for i := range 40 {
		e := event(made.Tenant.ID, noon.Add(-time.Duration(i)*time.Minute))
		e.ModelAsked, e.Charge = []string{"gpt-4o", "claude"}[i%2], exact.FromInt(4_560_000_000_000)
		s.store(e)
	}
	session := s.signIn(made.SignInToken)
	s.get("/exports", session).has(t, "No file was asked for yet.")
	s.get("/requests?model=claude", session).has(t, "Export everything", `href="/exports?kind=requests&amp;of=model%3Dclaude#new"`)
	s.get("/exports?kind=requests&of=model%3Dclaude", session).has(t, "Make the file", `value="model=claude"`, "model claude", `href="/requests?model=claude"`)
	usagePage := s.get("/usage?model=claude&by=model", session)
	usagePage.has(t, `href="/usage.csv?`, `href="/exports?kind=usage&amp;of=by%3Dmodel%26model%3Dclaude#new"`)
	usagePage.hasNot(t, `name="format"`)
	s.get("/exports?kind=usage&of=by%3Dmodel%26model%3Dclaude", session).has(t, "Make the file", `value="by=model&amp;model=claude"`, "model claude")
	s.get("/exports?kind=lunch&of=%25zz", session).hasNot(t, "Make the file")
	a := s.post("/exports", session, url.Values{"kind": {"requests"}, "format": {"csv"}, "of": {"model=claude"}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/exports?done=export-asked" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get("/exports", session).has(t, "waits to be made", `hx-trigger="moved from:body, every 5s"`)
	s.clock.advance(time.Second)
	s.makeExports()
	list := s.get("/tiles/exports", session)
	list.has(t, "ready", "SHA-256", "20")
	list.hasNot(t, "every 5s", "<html")
	href := contentLink.FindString(list.body)
	file := s.get(href, session)
	file.has(t, "4.56", "claude", "checksum", "rows 20", "Europe/Berlin")
	file.hasNot(t, "gpt-4o,gpt-4o,ok")
	if h := file.header; !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || !strings.HasPrefix(h.Get("Content-Type"), "text/csv") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", h)
	}
	s.post("/exports", session, url.Values{"kind": {"usage"}, "format": {"json"}, "of": {"range=7d&by=model"}})
	s.makeExports()
	s.get("/exports", session).has(t, "Usage by day, by model", "JSON lines")

	s.super(`update members set role = 'viewer'`)
	seen := s.get("/exports", session)
	seen.has(t, "holds what your role does not see")
	if contentLink.MatchString(seen.body) {
		t.Error("a viewer is led to a file with money in it")
	}
	if a := s.get(href, session); a.status != http.StatusForbidden {
		t.Errorf("its file: %d", a.status)
	}
	s.post("/exports", session, url.Values{"kind": {"usage"}, "format": {"csv"}, "of": {"by=customer"}})
	s.makeExports()
	mine := s.get(contentLink.FindString(s.get("/exports", session).body), session)
	mine.has(t, "gpt-4o")
	mine.hasNot(t, "4.56", "billed", "customer")
	other := s.signIn(s.tenant("Bolt", "bo@bolt.example").SignInToken)
	if a := s.get(href, other); a.status != http.StatusNotFound {
		t.Errorf("another tenant: %d", a.status)
	}
	s.get("/exports", other).has(t, "No file was asked for yet.")
}

func TestTheAuditIsExportedFromItsPageByOwnersAndAdminsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	s.get("/exports", session).has(t, "Export the audit", "the last 30 days")
	form := url.Values{"kind": {"audit"}, "format": {"csv"}, "days": {"30"}}
	if a := s.post("/exports", session, url.Values{"kind": {"audit"}, "format": {"csv"}, "days": {"x"}}); a.status != http.StatusBadRequest {
		t.Errorf("no range: %d", a.status)
	}
	s.post("/exports", session, form).goesOn(t, "/exports?done=export-asked")
	s.makeExports()
	page := s.get("/exports", session)
	page.has(t, "Audit", "ready")
	link := contentLink.FindString(page.body)
	s.super(`update members set role = 'billing'`)
	s.get("/exports", session).hasNot(t, "Export the audit", link)
	if a := s.post("/exports", session, form); a.status != http.StatusForbidden {
		t.Errorf("billing asks for the audit: %d", a.status)
	}
	if a := s.get(link, session); a.status != http.StatusForbidden {
		t.Errorf("billing downloads it: %d", a.status)
	}
}
