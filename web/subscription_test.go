package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	sums "weir/internal/money"
)

// subscribed is a customer on a plan with a fee, and the public ids of it and of
// a dearer plan.
func (s site) subscribed(tenant uuid.UUID) (at, smaller, larger string) {
	s.t.Helper()
	x, public := s.addCustomer(tenant, "Kestrel")
	var ids []string
	for i, name := range []string{"Small", "Large"} {
		p, err := s.billing.AddPublished(s.t.Context(), tenant, name, billing.NewVersion{
			Limits: []limits.Limit{perDay(limits.DimensionRequests, int64(5+4*i))}, BaseFee: &sums.Amount{Amount: []string{"10.00", "40.00"}[i], Currency: "EUR"},
		})
		must(s.t, err)
		ids = append(ids, id.Plan.Format(p.ID))
		if i == 0 {
			_, err = s.billing.Subscribe(s.t.Context(), tenant, x.ID, p.ID)
			must(s.t, err)
		}
	}
	return "/customers/" + public, ids[0], ids[1]
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// changed sends the form of the preview that a page shows.
func (s site) changed(page answer, at, session, plan, takes string) answer {
	s.t.Helper()
	m := tokenField.FindStringSubmatch(page.body)
	if m == nil {
		s.t.Fatalf("no preview:\n%s", page.body)
	}
	return s.post(at+"/change", session, url.Values{"token": {m[1]}, "plan": {plan}, "takes": {takes}})
}

func TestAPlanIsChangedOnlyAfterWhatItDoesWasShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("billing")
	at, small, large := s.subscribed(made.Tenant.ID)
	s.get(at, session).has(t, "Change plan", `href="`+at+`/change"`, "active", "What happened", "Put on a plan")
	page := s.get(at+"/change", session)
	page.has(t, `value="`+large+`"`, "See what it does")
	page.hasNot(t, `value="`+small+`"`, `name="token"`)
	preview := s.get(at+"/change?plan="+large, session)
	preview.has(t, "An upgrade, now", "<b>9</b> requests a day", "Before: 5 requests a day.", "−10.00 EUR", "40.00 EUR", "30.00 EUR", "Carries over", "Change it now")
	s.get(at, session).hasNot(t, "Large, version 1")
	if a := s.changed(preview, at, session, large, "now"); a.status != http.StatusSeeOther || !strings.HasSuffix(a.header.Get("Location"), "?done=moved") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "Large, version 1", "Moved to another version", "Large, by ")
	for plan, want := range map[string]string{"x": "Choose a plan.", id.Plan.Format(id.New()): "There is no such plan.", large: "It is on this plan already."} {
		s.get(at+"/change?plan="+plan, session).has(t, want)
	}
	down := s.get(at+"/change?plan="+small, session)
	down.has(t, "When the period ends, ", "Put it down for ")
	if a := s.changed(down, at, session, small, "later"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "Small, version 1", "Stay on Large, version 1")
	s.post(at+"/stay", session, nil)
	s.get(at, session).hasNot(t, "Small, version 1")
	s.changed(down, at, session, small, "later").has(t, "does not hold any more")
}

func TestASubscriptionIsCancelledKeptSuspendedAndEndedFromItsCustomersPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	at, _, _ := s.subscribed(made.Tenant.ID)
	s.get(at+"/cancel", session).has(t, "Cancel the subscription of Kestrel?", "It runs until its period ends")
	for _, step := range []struct {
		post string
		want []string
	}{
		{"/cancel", []string{"cancelled", "It ends with its period.", "Take the cancellation back"}},
		{"/keep", []string{"active", "Cancellation taken back"}},
		{"/past-due", []string{"past due", "Nothing is owed any more"}},
		{"/settled", []string{"Mark as past due"}},
		{"/pause", []string{"suspended", "Resume the subscription"}},
		{"/unpause", []string{"Suspend the subscription"}},
	} {
		for range 2 { // twice is once
			if a := s.post(at+step.post, session, nil); a.status != http.StatusSeeOther {
				t.Fatalf("%s: %d %s", step.post, a.status, a.body)
			}
		}
		s.get(at, session).has(t, step.want...)
	}
	s.get(at+"/end", session).has(t, "End the subscription of Kestrel now?")
	s.post(at+"/end", session, url.Values{"word": {"Kest"}}).has(t, "This is not the name.")
	s.post(at+"/end", session, url.Values{"word": {"Kestrel"}})
	s.get(at, session).has(t, "Put on this plan", "Subscription ended")
}

func TestAnOverrideIsMadeShownWithItsReasonAndEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("billing")
	at, _, _ := s.subscribed(made.Tenant.ID)
	typed := url.Values{"limits.0.dimension": {"requests"}, "limits.0.window": {"day"}, "limits.0.amount": {"800"}, "reason": {"a launch"}, "until": {"2020-01-01T00:00"}}
	s.get(at+"/overrides/new", session).has(t, "Override for Kestrel", "The customer reads it too.")
	s.post(at+"/overrides", session, typed).has(t, "This must be later than its start", `value="a launch"`, `value="800"`)
	typed.Set("until", s.clock.now().In(time.UTC).AddDate(0, 3, 0).Format("2006-01-02T15:04"))
	for name, wrong := range map[string]string{"reason": "Say why", "limits.0.amount": "How much?"} {
		was := typed.Get(name)
		typed.Set(name, "")
		s.post(at+"/overrides", session, typed).has(t, wrong)
		typed.Set(name, was)
	}
	if a := s.post(at+"/overrides", session, typed); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.post(at+"/overrides", session, typed).has(t, "There is an override of the same limit at the same time")
	page := s.get(at, session)
	page.has(t, "800 requests a day instead of 5", "“a launch”", "<b>800</b> requests a day", "Override made")
	end := regexp.MustCompile(at + `/overrides/ovr_[0-9a-z]+/end`).FindString(page.body)
	if a := s.post(end, session, nil); a.status != http.StatusSeeOther {
		t.Fatalf("%s: %d %s", end, a.status, a.body)
	}
	s.get(at, session).has(t, "Override ended early", "<b>5</b> requests a day", "Ended ")
	_, other := s.addCustomer(made.Tenant.ID, "Other")
	if a := s.post(strings.Replace(end, at, "/customers/"+other, 1), session, nil); a.status != http.StatusNotFound {
		t.Errorf("through another customer: %d", a.status)
	}
}
