package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	exact "weir/internal/money"
	"weir/internal/usage"
	"weir/web/ui"
)

// event is a call of a tenant that used 10 tokens for 50 pico-euros.
func event(tenant uuid.UUID, at time.Time) usage.Event {
	return usage.Event{
		Version: 1, ID: id.At(at), RequestID: id.At(at), Tenant: tenant, ModelAsked: "gpt-4o", ModelServed: "gpt-4o", Kind: "chat",
		StartedAt: at, EndedAt: at.Add(900 * time.Millisecond), LocalDay: limits.DayStart(at, time.UTC), Outcome: usage.OK, Requests: 1,
		Tokens: limits.Tokens{Input: 7, Output: 3}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 7, Output: 20}},
		Charge: exact.FromInt(50), Currency: "EUR",
		Attempts: []usage.Attempt{{Provider: "openai", Model: "gpt-4o", Status: 200, StartedAt: at, EndedAt: at.Add(time.Second)}},
	}
}

// store puts events into the books as the worker does.
func (s site) store(events ...usage.Event) {
	s.t.Helper()
	w := usage.NewWorker(s.db.Worker, nil, usage.SigningKeys{}, usage.WorkerOptions{Log: slog.New(slog.DiscardHandler)})
	must(s.t, w.Backfill(s.t.Context(), id.New(), events))
}

func TestPageCSVAndReportHaveTheSameTotals(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	tenant := made.Tenant.ID
	customer := s.customerKey(tenant, "=cmd|' /C calc'!A1", "Key")
	var events []usage.Event
	for i := range 60 {
		e := event(tenant, noon.Add(-time.Duration(i)*37*time.Minute))
		e.ModelAsked = []string{"gpt-4o", "o4-mini", "claude"}[i%3]
		e.Tokens.Input, e.Tokens.CachedInput, e.Tokens.Reasoning = int64(i*1000), int64(i), int64(i%2)
		e.Charge = exact.FromInt(int64(i) * 1_234_567_891)
		e.Customer, e.Counter = customer.Customer, customer.Counter
		events = append(events, e)
	}
	s.store(events...)
	session := s.signIn(made.SignInToken)
	for _, query := range []string{"range=7d", "range=7d&by=customer", "range=7d&by=outcome&bucket=15m", "range=30d&by=api_key", "range=dates&from=2026-11-29&to=2026-11-29&by=model", "range=7d&model=claude"} {
		page, file := s.get("/usage?"+query, session), s.get("/usage.csv?"+query, session)
		if page.status != http.StatusOK || file.status != http.StatusOK {
			t.Fatalf("%s: %d %d %s", query, page.status, file.status, page.body)
		}
		q, _ := url.ParseQuery(query)
		span := spanOf(q, noon.In(berlin(t)))
		want, err := usage.NewReports(s.db.App, s.clock.now).Report(t.Context(), tenant, usage.Query{
			From: span.From, To: span.To, Bucket: usage.Day, Zone: berlin(t), Filter: usage.Filter{Model: q.Get("model"), Tests: usage.WithTests},
		})
		must(t, err)
		rows := readCSV(t, file.body)
		last := rows[len(rows)-1]
		var requests, tokens int64
		billed := exact.Pico{}
		for _, r := range rows[1 : len(rows)-1] {
			requests, tokens = requests+whole(t, r[4]), tokens+whole(t, r[12])
			billed = billed.Add(pico(t, r[14]))
		}
		total := want.Totals
		if requests != total.Requests || tokens != total.Tokens.Total() || whole(t, last[4]) != total.Requests || whole(t, last[12]) != total.Tokens.Total() {
			t.Errorf("%s: rows %d %d, last row %s %s, report %d %d", query, requests, tokens, last[4], last[12], total.Requests, total.Tokens.Total())
		}
		if !billed.Sub(total.Charges[0].Amount).IsZero() || last[14] != total.Charges[0].Amount.Decimal() {
			t.Errorf("%s: billed %s, last row %s, report %s", query, billed.Decimal(), last[14], total.Charges[0].Amount.Decimal())
		}
		page.has(t, ui.Of(total.Tokens.Total(), "token", "tokens")+" in "+ui.Of(total.Requests, "request", "requests"), `title="`+total.Charges[0].Amount.Decimal()+` EUR"`)
	}
	file := s.get("/usage.csv?range=7d&by=customer", session)
	if h := file.header; h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || !strings.HasPrefix(h.Get("Content-Type"), "text/csv") {
		t.Errorf("%v", h)
	}
	file.has(t, "start (Europe/Berlin)", "'=cmd|", "\r\n")
	file.hasNot(t, ",=cmd")
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	z, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	return z
}

func readCSV(t *testing.T, body string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	must(t, err)
	return rows
}

func whole(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	must(t, err)
	return n
}

func pico(t *testing.T, decimal string) exact.Pico {
	t.Helper()
	w, frac, _ := strings.Cut(decimal, ".")
	n, err := strconv.ParseInt(w+frac+strings.Repeat("0", 12-len(frac)), 10, 64)
	must(t, err)
	return exact.FromInt(n)
}

func TestUsageAndRequestsOfOneTenantShowNothingOfAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	acme, bolt := s.tenant("Acme", "ann@acme.example"), s.tenant("Bolt-Works", "bo@bolt.example")
	key := s.customerKey(bolt.Tenant.ID, "Bolt-Customer", "Bolt-Key")
	e := event(bolt.Tenant.ID, noon.Add(-time.Minute))
	e.ModelAsked, e.ModelServed, e.Customer, e.Key, e.Counter, e.Tokens.Input = "bolt-model", "bolt-model", key.Customer, key.ID, key.Counter, 987_654
	s.store(e)
	session := s.signIn(acme.SignInToken)
	request := id.Request.Format(e.RequestID)
	for _, path := range []string{"/usage", "/usage?by=customer", "/usage.csv", "/requests", "/", "/tiles/flow", "/tiles/today", "/tiles/caps", "/tiles/needs", "/requests?q=" + request} {
		s.get(path, session).hasNot(t, "Bolt", "bolt-model", "987,6", "987654", id.Customer.Format(key.Customer))
	}
	unknown := s.get("/requests/"+id.Request.Format(id.New()), session)
	other := s.get("/requests/"+request, session)
	if other.status != http.StatusNotFound || unknown.status != http.StatusNotFound {
		t.Errorf("%d %d", other.status, unknown.status)
	}
	for _, q := range []string{"customer=" + id.Customer.Format(key.Customer), "key=" + id.APIKey.Format(key.Counter)} {
		for _, path := range []string{"/usage?", "/usage.csv?", "/requests?"} {
			if a := s.get(path+q, session); a.status != http.StatusNotFound {
				t.Errorf("%s: %d", path+q, a.status)
			}
		}
	}
	mine := s.signIn(bolt.SignInToken)
	s.get("/requests", mine).has(t, "Bolt-Customer", "Bolt-Key", "bolt-model", request)
	s.get("/requests/"+request, mine).has(t, "Passed: ", "Reserved 27 tokens", "Estimate against actual", request, id.Event.Format(e.ID), id.Reservation.Format(e.ID))
	if a := s.get("/requests?q="+request, mine); a.status != http.StatusSeeOther || a.header.Get("Location") != "/requests/"+request {
		t.Errorf("search by id: %d %s", a.status, a.header.Get("Location"))
	}
}

func TestRolesWithoutMoneySeeNoneOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	key := s.customerKey(made.Tenant.ID, "Customer-Name", "Key-Name")
	e := event(made.Tenant.ID, noon.Add(-time.Minute))
	e.Customer, e.Key, e.Counter = key.Customer, key.ID, key.Counter
	e.Charge = exact.FromInt(4_560_000_000_000)
	s.store(e)
	s.super(`update members set role = 'viewer'`)
	session := s.signIn(made.SignInToken)
	for _, path := range []string{"/", "/usage", "/usage?by=customer", "/usage?by=api_key&show=billed", "/usage.csv", "/requests", "/requests/" + id.Request.Format(e.RequestID)} {
		a := s.get(path, session)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		a.hasNot(t, "4.56", "Billed", "billed at", "Customer-Name", "Key-Name")
	}
	for _, path := range []string{"/usage?customer=" + id.Customer.Format(key.Customer), "/requests?key=" + id.APIKey.Format(key.Counter)} {
		if a := s.get(path, session); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestADayOfTwentyFiveHoursHasThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	first := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC) // 02:30 CEST, and an hour later 02:30 CET
	s.store(event(made.Tenant.ID, first), event(made.Tenant.ID, first.Add(time.Hour)), event(made.Tenant.ID, first.Add(time.Hour+time.Minute)))
	a := s.get("/usage?range=dates&from=2026-10-25&to=2026-10-25&bucket=1h", s.signIn(made.SignInToken))
	a.has(t, "30 tokens in 3 requests", "02:00 to 02:00 CET: 10 tokens", "02:00 to 03:00 CET: 20 tokens")
	if n := strings.Count(a.body, "<title>Sun 25 Oct"); n != 25 {
		t.Errorf("%d columns", n)
	}
}

func TestTheLogPagesByTimeAndLeavesNothingOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	var events []usage.Event
	for i := range 2*logRows + 5 {
		events = append(events, event(made.Tenant.ID, noon.Add(-time.Duration(i/3)*time.Second)))
	}
	s.store(events...)
	session := s.signIn(made.SignInToken)
	seen := map[string]bool{}
	for path := "/requests"; path != ""; {
		page := s.get(path, session)
		for _, e := range events {
			if ref := id.Request.Format(e.RequestID); strings.Contains(page.body, ref) {
				if seen[ref] {
					t.Errorf("%s twice", ref)
				}
				seen[ref] = true
			}
		}
		path = ""
		if _, rest, ok := strings.Cut(page.body, `href="/requests?after=`); ok {
			path = "/requests?after=" + rest[:strings.IndexByte(rest, '"')]
		}
	}
	if len(seen) != len(events) {
		t.Errorf("%d of %d", len(seen), len(events))
	}
}

func TestWhyARequestWasRefusedIsSaidInFigures(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	key := s.customerKey(made.Tenant.ID, "Kestrel", "batch")
	e := event(made.Tenant.ID, noon.Add(-time.Minute))
	e.Customer, e.Key, e.Counter, e.Outcome, e.Requests, e.Refused, e.Attempts, e.Tokens, e.Charge = key.Customer, key.ID, key.Counter, "refused_tokens_minute", 0, 1, nil, limits.Tokens{}, exact.Pico{}
	e.Refusal = &usage.Refusal{Code: "rate_limit_exceeded", RetryAfter: 1104 * time.Millisecond, Limits: []usage.Refusing{{
		Limit: limits.Limit{Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: key.Customer, Name: "Team"}, Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 200_000},
		Used:  193_840, Remaining: 6_160, Requested: 9_840,
	}}}
	s.store(e)
	s.get("/requests/"+id.Request.Format(e.RequestID), s.signIn(made.SignInToken)).has(t,
		"Refused: Kestrel had <b>6,160</b> tokens left this minute, and the call asked for <b>9,840</b>.",
		"1.104 s", "6,160 tokens", "203,680", "Kestrel, plan Team", "refused, over by 3,680", "Answered 429", "Nothing was charged on any limit.")
}

// stream listens to GET /live of pages that look often.
func (s site) stream(ctx context.Context, pages *Pages, session string) *bufio.Reader {
	s.t.Helper()
	e := echo.New()
	pages.Mount(e)
	server := httptest.NewServer(e)
	s.t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live", nil)
	must(s.t, err)
	req.Header.Set("Cookie", s.cookie+"="+session)
	res, err := server.Client().Do(req)
	must(s.t, err)
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Uncompressed {
		s.t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return bufio.NewReader(res.Body)
}

func (s site) livePages(look, session time.Duration) *Pages {
	s.t.Helper()
	reports := usage.NewReports(s.db.App, s.clock.now)
	pages, err := New(Deps{
		Log: slog.New(slog.DiscardHandler), Sessions: auth.NewSessions(s.db.App, s.clock.now), Tenants: s.tenants, Billing: s.billing, Limits: s.engine, Reports: reports,
		PublicURL: local, OpenAPI: openAPI(s.t), Now: s.clock.now,
	})
	must(s.t, err)
	pages.watches.every, pages.sessionEvery = look, session
	return pages
}

// until reads lines up to one that begins so.
func until(t *testing.T, r *bufio.Reader, prefix string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v before %q", err, prefix)
		}
		if strings.HasPrefix(line, prefix) {
			return
		}
	}
}

func TestAnOpenPageHearsOfItsOwnCallsAndEndsWithItsSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	acme, bolt := s.tenant("Acme", "ann@acme.example"), s.tenant("Bolt", "bo@bolt.example")
	session := s.signIn(acme.SignInToken)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	pages := s.livePages(5*time.Millisecond, 20*time.Millisecond)
	lines := s.stream(ctx, pages, session)
	until(t, lines, "retry:")
	s.store(event(bolt.Tenant.ID, noon.Add(-time.Minute)))
	until(t, lines, ": ") // the session was looked at, and nothing moved
	s.store(event(acme.Tenant.ID, noon.Add(-time.Minute)))
	until(t, lines, "event: moved")
	s.post("/sign-out", session, url.Values{})
	until(t, lines, "event: ended")
	if rest, err := io.ReadAll(lines); err != nil || !bytes.Contains(rest, []byte("session")) {
		t.Errorf("%q %v", rest, err)
	}
	pages.watches.mu.Lock()
	defer pages.watches.mu.Unlock()
	if len(pages.watches.by) != 0 {
		t.Errorf("%d watches are left", len(pages.watches.by))
	}
}

func TestOpenPagesEndWithTheProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	pages := s.livePages(time.Hour, time.Hour)
	lines := s.stream(ctx, pages, session)
	until(t, lines, "retry:")
	pages.End()
	until(t, lines, "event: ended")
	if _, _, err := pages.watches.join(uuid.New()); err == nil {
		t.Error("a viewer is taken after the end")
	}
}

func TestOneTenantIsLookedAtOnceHoweverManyViewers(t *testing.T) {
	t.Parallel()
	looked := make(chan struct{}, 1000)
	moves := int64(0)
	w := newWatches(func(context.Context, uuid.UUID) (usage.Pulse, error) {
		looked <- struct{}{}
		moves++ // one goroutine looks
		return usage.Pulse{Calls: moves}, nil
	}, time.Millisecond)
	tenant := uuid.New()
	var leaves []func()
	for range 50 {
		moved, leave, err := w.join(tenant)
		must(t, err)
		leaves = append(leaves, leave)
		if len(leaves) == 50 {
			<-moved
		}
	}
	for _, leave := range leaves {
		leave()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.by) != 0 || len(looked) == 0 {
		t.Errorf("%d watches, %d looks", len(w.by), len(looked))
	}
}
