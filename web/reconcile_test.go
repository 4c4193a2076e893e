package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// TestADifferenceInTheBooksIsShownAndPutRightFromThePage: the day is said to
// differ, by how much and where, whoever may has it summed again, and then it
// agrees.
func TestADifferenceInTheBooksIsShownAndPutRightFromThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	tenant := made.Tenant.ID
	at := noon.AddDate(0, 0, -2)
	day := limits.DayStart(at, berlin(t))
	var events []usage.Event
	for i := range 3 {
		e := event(tenant, at.Add(time.Duration(i)*time.Minute))
		e.LocalDay = day
		e.Charges = []limits.Charge{{Ledger: "tenant:" + tenant.String() + "/tokens/day", WindowStart: day, Amount: 10}}
		events = append(events, e)
	}
	s.store(events...)
	session := s.signIn(made.SignInToken)
	date := at.In(berlin(t)).Format(time.DateOnly)
	page := s.get("/reconcile?day="+date, session)
	page.has(t, "every book agrees", "All three books stand at the same level: 30 tokens", ">30</td>")
	s.super(`update usage_day set output_tokens = output_tokens - 4 where tenant_id = $1`, tenant)
	s.super(`update cap_totals set used = 31 where tenant_id = $1`, tenant)
	page = s.get("/reconcile?day="+date, session)
	page.has(t, "2 rows differ from the calls", "30 tokens by calls, 30 by quarters of an hour, 26 by day", "+1")
	var found int
	if s.scan(`select count(*) from reconciliations where found_at is not null and checked_at is null`, &found); found != 1 {
		t.Error("what a look found was not noted")
	}
	if a := s.post("/reconcile/rebuild", session, url.Values{"day": {date}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get("/reconcile?day="+date, session).has(t, "being summed again")
	keeper := usage.NewKeeper(s.db.Worker, 0, slog.New(slog.DiscardHandler), s.clock.now)
	must(t, keeper.RebuildAsked(t.Context()))
	page = s.get("/reconcile?day="+date, session)
	page.has(t, "every book agrees", "Summed again")
	if s.scan(`select count(*) from reconciliations where found_at is not null`, &found); found != 0 {
		t.Error("it still counts as a difference")
	}
	if strings.Contains(page.body, "being summed again") {
		t.Error("it is still being summed")
	}
	var notes int
	s.scan(`select count(*) from audit_entries where action = 'books.rebuild'`, &notes)
	if notes != 1 {
		t.Errorf("%d notes in the audit", notes)
	}
	s.super(`update members set role = 'developer' where tenant_id = $1`, tenant)
	page = s.get("/reconcile?day="+date, session)
	if strings.Contains(page.body, "Billed") || strings.Contains(page.body, "/reconcile/rebuild") {
		t.Error("a developer sees money, or may sum again")
	}
}

// TestAnyDayThatIsAskedForIsAnswered, whatever is typed into the address.
func TestAnyDayThatIsAskedForIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	session := s.signIn(made.SignInToken)
	for _, day := range []string{"", "2026-02-30", "1999-01-01", "9999-12-31", "2020-01-01", "%00", "tomorrow", noon.AddDate(0, 0, 1).Format(time.DateOnly)} {
		if a := s.get("/reconcile?day="+url.QueryEscape(day), session); a.status != http.StatusOK {
			t.Errorf("%q: %d", day, a.status)
		}
	}
}

// TestACustomerIsErasedFromItsPage once its name was typed, and answers no call
// from then on.
func TestACustomerIsErasedFromItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	tenant := made.Tenant.ID
	key := s.customerKey(tenant, "Heron Ltd", "production")
	e := event(tenant, noon)
	e.Customer, e.EndUser = key.Customer, "bob@heron.example"
	s.store(e)
	session := s.signIn(made.SignInToken)
	at := "/customers/" + id.Customer.Format(key.Customer)
	s.get(at+"/erase", session).has(t, "Erase Heron Ltd?", "1", "key that works now is refused")
	if a := s.post(at+"/erase", session, url.Values{"word": {"Heron"}}); a.status != http.StatusBadRequest {
		t.Fatalf("another name: %d", a.status)
	}
	if a := s.post(at+"/erase", session, url.Values{"word": {"Heron Ltd"}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	must(t, usage.NewKeeper(s.db.Worker, 0, slog.New(slog.DiscardHandler), s.clock.now).EraseAsked(t.Context()))
	s.get(at, session).has(t, tenants.ErasedName, "Resume")
	var left int
	s.scan(`select (select count(*) from customers where name like 'Heron%') + (select count(*) from usage_events where end_user is not null)`, &left)
	if left != 0 {
		t.Errorf("%d rows still name it", left)
	}
}
