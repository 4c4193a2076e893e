package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func firstForm(token string) url.Values {
	return url.Values{"token": {token}, "name": {"Ann"}, "email": {"ann@acme.example"}, "password": {"a good long phrase"}, "tenant": {"Acme"}, "zone": {"Europe/Berlin"}}
}

func (s site) tenantsThere() (n int) {
	s.t.Helper()
	s.scan(`select count(*) from tenants`, &n)
	return n
}

func TestTheFirstVisitorOfAnEmptyInstallationMakesItsFirstTenant(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	if a := s.get("/", ""); a.status != http.StatusSeeOther || a.header.Get("Location") != "/first" {
		t.Fatalf("%d %s", a.status, a.header.Get("Location"))
	}
	s.get("/first", "").has(t, "Nobody is here yet", "The process printed it", `name="token"`)
	page := s.taking("gzip", http.MethodGet, "/first/"+s.first, "", nil)
	page.has(t, `type="hidden" name="token" value="`+s.first+`"`)
	if page.header.Get("Content-Encoding") != "" {
		t.Error("a page with the token is packed")
	}
	wrong := firstForm(s.first)
	wrong.Set("email", "nobody")
	wrong.Set("zone", "Atlantis")
	a := s.post("/first", "", wrong)
	a.has(t, `href="#f-email"`, `href="#f-zone"`, `value="Acme"`, `value="`+s.first+`"`)
	a.hasNot(t, "a good long phrase")

	made := s.post("/first", "", firstForm(s.first))
	if made.status != http.StatusSeeOther || made.header.Get("Location") != "/setup" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	s.get("/settings", made.session(s)).has(t, "Acme", "Europe/Berlin")
	if in := s.post("/sign-in", "", url.Values{"email": {"ann@acme.example"}, "password": {"a good long phrase"}}); in.status != http.StatusSeeOther {
		t.Errorf("her password: %d", in.status)
	}

	// The token is good for nothing any more.
	if a := s.get("/", ""); a.header.Get("Location") != "/sign-in" {
		t.Errorf("%s", a.header.Get("Location"))
	}
	if a := s.get("/first/"+s.first, ""); a.status != http.StatusSeeOther || a.header.Get("Location") != "/sign-in" {
		t.Errorf("%d %s", a.status, a.header.Get("Location"))
	}
	again := firstForm(s.first)
	again.Set("email", "bo@bolt.example")
	if a := s.post("/first", "", again); a.status != http.StatusConflict || s.tenantsThere() != 1 {
		t.Errorf("a second time: %d, %d tenants", a.status, s.tenantsThere())
	}
}

func TestWhoGuessesTheFirstTokenKeepsItsHolderNotOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	for range 11 {
		s.post("/first", "", firstForm("a guess"))
	}
	if a := s.post("/first", "", firstForm("a guess")); a.status != http.StatusTooManyRequests {
		t.Errorf("a twelfth guess: %d", a.status)
	}
	if a := s.post("/first", "", firstForm(s.first)); a.status != http.StatusSeeOther || s.tenantsThere() != 1 {
		t.Errorf("who holds the token: %d", a.status)
	}
}

func TestTheFirstTokenCannotBeGuessedAndIsNothingToAnInstallationThatBegan(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	for i := range 10 {
		token := strings.Repeat("A", i*6)
		if a := s.post("/first", "", firstForm(token)); a.status != http.StatusUnauthorized || !strings.Contains(a.body, `href="#f-token"`) {
			t.Fatalf("%q: %d", token, a.status)
		}
	}
	if a := s.post("/first", "", firstForm("one more")); a.status != http.StatusTooManyRequests {
		t.Errorf("after ten wrong ones: %d", a.status)
	}
	if s.tenantsThere() != 0 {
		t.Error("a tenant was made")
	}
	s.tenant("Bolt", "bo@bolt.example") // as the command makes it
	if a := s.post("/first", "", firstForm(s.first)); a.status != http.StatusConflict || s.tenantsThere() != 1 {
		t.Errorf("after a tenant came another way: %d", a.status)
	}
}

func TestOfTwoFirstVisitsAtOnceOneMakesTheTenant(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	var wg sync.WaitGroup
	answers := make([]answer, 6)
	for i := range answers {
		wg.Go(func() {
			form := firstForm(s.first)
			form.Set("email", string(rune('a'+i))+"@acme.example")
			answers[i] = s.post("/first", "", form)
		})
	}
	wg.Wait()
	made := 0
	for _, a := range answers {
		switch a.status {
		case http.StatusSeeOther:
			made++
		case http.StatusConflict:
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if made != 1 || s.tenantsThere() != 1 {
		t.Errorf("%d were told that they made one, there are %d", made, s.tenantsThere())
	}
}
