package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/exports"
	"weir/internal/id"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

func TestEveryPageOfThePortalAnswersWhereverItsCustomerStands(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	of := func(customer uuid.UUID) billing.Subscription {
		page, err := p.billing.Subscriptions(t.Context(), p.acme, billing.SubscriptionFilter{Customer: customer}, uuid.Nil, 1)
		must(t, err)
		return page.Items[0]
	}
	key, err := id.APIKey.Parse(p.keys[p.kestrel])
	must(t, err)
	g := p.guest(p.acme, p.kestrel)
	for _, c := range []struct {
		stands, home string
		do           func() error
	}{
		{"on a plan", "Plan of Kestrel", func() error { return nil }},
		{"suspended", "Your subscription is suspended. Every call is refused.", func() error { _, err := p.billing.Suspend(t.Context(), p.acme, of(p.kestrel).ID); return err }},
		{"cancelled", "Plan of Kestrel", func() error {
			_, err := p.billing.Resume(t.Context(), p.acme, of(p.kestrel).ID)
			must(t, err)
			_, err = p.billing.Cancel(t.Context(), p.acme, of(p.kestrel).ID)
			return err
		}},
		{"without a key", "Plan of Kestrel", func() error { _, err := p.tenants.RevokeAPIKey(t.Context(), p.acme, key); return err }},
		{"ended", "You are on no plan", func() error { _, err := p.billing.End(t.Context(), p.acme, of(p.kestrel).ID); return err }},
		{"erased", "Your account is suspended", func() error {
			_, err := p.tenants.EraseCustomer(t.Context(), p.acme, p.kestrel, usage.Erase, quotes.Forget, exports.Forget) // its session would be over
			return err
		}},
	} {
		must(t, c.do())
		for _, r := range p.routes {
			if !ofPortal(r.Path) || r.Method != http.MethodGet {
				continue
			}
			path := strings.NewReplacer("/requests/:id", "/requests/"+p.calls[p.kestrel], "/keys/:id", "/keys/"+p.keys[p.kestrel], ":token", strings.Repeat("a", 43)).Replace(r.Path)
			if a := g.see(path); a.status != http.StatusOK {
				t.Errorf("%s, %s: %d", c.stands, path, a.status)
			}
		}
		g.see("/portal").has(t, c.home)
	}
}

func TestWhoIsOutOfThePortalIsOutOfAllOfIt(t *testing.T) {
	t.Parallel()
	for who, out := range map[string]func(p parties) error{
		"of a suspended tenant": func(p parties) error {
			p.super(`update tenants set suspended_at = now() where tenant_id = $1`, p.acme)
			return nil
		},
		"erased": func(p parties) error {
			_, err := p.tenants.EraseCustomer(t.Context(), p.acme, p.kestrel, portal.Forget)
			return err
		},
		"signed out by the tenant": func(p parties) error { _, err := p.portal.EndSessions(t.Context(), p.acme, p.kestrel); return err },
	} {
		p := newParties(t)
		g := p.guest(p.acme, p.kestrel)
		link, err := p.portal.MakeLink(t.Context(), p.acme, p.kestrel)
		must(t, err)
		must(t, out(p))
		before := p.fingerprint()
		for _, r := range p.routes {
			if !ofPortal(r.Path) || r.Method == http.MethodHead || strings.HasPrefix(r.Path, "/portal/sign-") || strings.HasPrefix(r.Path, "/portal/in") {
				continue
			}
			path := strings.NewReplacer("/requests/:id", "/requests/"+p.calls[p.kestrel], "/keys/:id", "/keys/"+p.keys[p.kestrel]).Replace(r.Path)
			a := g.do(r.Method, path, url.Values{"overlap_seconds": {"0"}, "word": {"Kestrel key"}}, map[string]string{"Cookie": "portal_session=" + g.session, "Sec-Fetch-Site": "same-origin"})
			if a.status != http.StatusSeeOther || a.header.Get("Location") != "/portal/sign-in?ended" {
				t.Errorf("%s, %s %s: %d", who, r.Method, path, a.status)
			}
			a.hasNot(t, "Kestrel")
		}
		if a := p.post("/portal/in", "", url.Values{"token": {tokenIn(t, link.URL)}}); a.status != http.StatusUnauthorized {
			t.Errorf("%s, by the link that waited: %d", who, a.status)
		}
		if p.fingerprint() != before {
			t.Errorf("%s: something was changed", who)
		}
	}
}

func TestASessionThatSomebodyElseChoseIsNeverTaken(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.heron)
	link, err := p.portal.MakeLink(t.Context(), p.acme, p.kestrel)
	must(t, err)
	enter := func(cookie string, from string) answer {
		header := map[string]string{"Cookie": "portal_session=" + cookie}
		if from != "" {
			header["Sec-Fetch-Site"] = from
		}
		return p.do(http.MethodPost, "/portal/in", url.Values{"token": {tokenIn(t, link.URL)}}, header)
	}
	for _, from := range []string{"cross-site", "same-site", ""} {
		if a := enter(g.session, from); a.status != http.StatusForbidden {
			t.Errorf("from %q: %d", from, a.status)
		}
	}
	a := enter(g.session, "same-origin")
	is := a.cookie(t, "portal_session").Value
	if a.status != http.StatusSeeOther || is == g.session || is == "" {
		t.Fatalf("%d, the session is %q", a.status, is)
	}
	if a := g.see("/portal"); a.status != http.StatusSeeOther {
		t.Errorf("the one before goes on: %d", a.status)
	}
	guest{p.site, is}.see("/portal").has(t, "Kestrel")
	for _, chosen := range []string{"", strings.Repeat("a", 43), strings.Repeat("a", 5000), "a%00b", `"`, "../", is + "x", is[:len(is)-1]} {
		if a := (guest{p.site, chosen}).see("/portal/keys"); a.status != http.StatusSeeOther {
			t.Errorf("with %.50q: %d", chosen, a.status)
		}
	}
}

func TestAKeyIsRotatedOnceByFormsAtOnceAndByItsCustomerAlone(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g, other := p.guest(p.acme, p.kestrel), p.guest(p.acme, p.heron)
	at := "/portal/keys/" + p.keys[p.kestrel] + "/rotate"
	var all sync.WaitGroup
	shown := make(chan string, 12)
	for range 6 {
		all.Go(func() {
			a := g.send(at, url.Values{"overlap_seconds": {"0"}})
			if s := secret.FindString(a.body); s != "" {
				shown <- s
			} else if a.status != http.StatusConflict {
				t.Errorf("late: %d", a.status)
			}
		})
		all.Go(func() {
			if a := other.send(at, url.Values{"overlap_seconds": {"0"}}); a.status != http.StatusNotFound {
				t.Errorf("another's: %d", a.status)
			}
		})
	}
	all.Wait()
	if len(shown) != 1 {
		t.Errorf("%d secrets", len(shown))
	}
	for overlap, want := range map[string]int{"-1": 400, "99999999999999999999": 400, "1e3": 400, "": 400, "2147483647": 400} {
		k, err := p.tenants.AddAPIKey(t.Context(), p.acme, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: p.kestrel, Name: "k" + overlap})
		must(t, err)
		if a := g.send("/portal/keys/"+id.APIKey.Format(k.ID)+"/rotate", url.Values{"overlap_seconds": {overlap}}); a.status != want {
			t.Errorf("for %q seconds: %d", overlap, a.status)
		}
	}
	management, err := p.tenants.AddAPIKey(t.Context(), p.acme, tenants.NewAPIKey{Kind: tenants.Management, Name: "m", Scopes: []string{"*"}})
	must(t, err)
	for _, key := range append(slices.Collect(maps.Values(p.keys)), id.APIKey.Format(management.ID), "key_x", "%00", id.Customer.Format(p.kestrel)) {
		if key == p.keys[p.kestrel] {
			continue
		}
		for _, what := range []string{"/rotate", "/revoke"} {
			if a := g.send("/portal/keys/"+key+what, url.Values{"overlap_seconds": {"0"}, "word": {"m"}}); a.status != http.StatusNotFound {
				t.Errorf("%s%s: %d", key, what, a.status)
			}
		}
	}
}
