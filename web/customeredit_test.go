package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/tenants"
)

func TestACustomerIsChangedOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	_, public := s.addCustomer(made.Tenant.ID, "Kestrel")
	at := "/customers/" + public
	s.get(at, session).has(t, `href="`+at+`/edit"`)
	s.get(at+"/edit", session).has(t, `value="Kestrel"`)
	if a := s.post(at, session, url.Values{"name": {"Kestrel GmbH"}, "email": {"k@kestrel.example"}, "external_id": {"k-1"}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "Kestrel GmbH", "k@kestrel.example", "k-1")
	a := s.post(at, session, url.Values{"name": {"kept"}, "email": {"nobody"}})
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-email"`) || !strings.Contains(a.body, `value="kept"`) {
		t.Errorf("a wrong address: %d", a.status)
	}
}

func TestASuspendedCustomerIsResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	_, public := s.addCustomer(made.Tenant.ID, "Kestrel")
	at := "/customers/" + public
	s.get(at+"/suspend", session).has(t, "Suspend Kestrel?")
	s.post(at+"/suspend", session, url.Values{})
	s.get(at, session).has(t, "Kestrel is suspended. Every call is refused.", ">Resume<")
	s.post(at+"/resume", session, url.Values{})
	s.get(at, session).hasNot(t, "is suspended")
}

func TestSuspendingAndRevokingCountEveryKeyThatWorks(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k := s.customerKey(made.Tenant.ID, "Kestrel", "production")
	for i := range 149 {
		_, err := s.tenants.AddAPIKey(t.Context(), made.Tenant.ID, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: k.Customer, Name: fmt.Sprint("key ", i)})
		must(t, err)
	}
	_, next, err := s.tenants.RotateAPIKey(t.Context(), made.Tenant.ID, k.ID, time.Hour)
	must(t, err)
	s.get("/customers/"+id.Customer.Format(k.Customer)+"/suspend", session).has(t, "<b>151</b>")
	s.get("/keys/"+id.APIKey.Format(next.ID)+"/revoke", session).has(t, "<b>149</b>", "<b>1</b>", "other secret of this key")
}

func TestOnlyWhoMayChangeCustomersDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("billing")
	_, public := s.addCustomer(made.Tenant.ID, "Kestrel")
	for _, path := range []string{"", "/suspend", "/resume"} {
		if a := s.post("/customers/"+public+path, session, url.Values{"name": {"x"}}); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	s.get("/customers/"+public, session).hasNot(t, "/edit\"", "/suspend\"")
}
