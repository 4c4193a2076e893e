package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// outOffer is a site with an open quote: the address of its page.
func outOffer(t *testing.T) (s site, session, path, public string) {
	t.Helper()
	s = newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	path, public = s.quoted(session, plan)
	return s, session, path, public
}

// program sends what a program would.
func (s site) program(method, path, kind, body string, header ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	must(s.t, err)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return s.answer(req)
}

func TestNoHostileAnswerToAnOfferAcceptsIt(t *testing.T) {
	t.Parallel()
	s, session, path, public := outOffer(t)
	const right = `{"version": 1, "name": "Adaeze Finch", "email": "adaeze@marlow.example"}`
	before := s.fingerprint()
	for name, c := range map[string]struct {
		method, kind, body string
		header             []string
		status             int
	}{
		"a version that is text":            {body: `{"version": "1", "name": "A", "email": "a@x.example"}`, status: 400},
		"a version that is a fraction":      {body: `{"version": 1.5, "name": "A", "email": "a@x.example"}`, status: 400},
		"a version that is too large":       {body: `{"version": 99999999999999999999, "name": "A", "email": "a@x.example"}`, status: 400},
		"a version that was never":          {body: `{"version": -1, "name": "A", "email": "a@x.example"}`, status: 409},
		"a name that is a list":             {body: `{"name": ["A"], "email": "a@x.example"}`, status: 400},
		"a name that is an object":          {body: `{"name": {"a": 1}, "email": "a@x.example"}`, status: 400},
		"no object":                         {body: `[` + right + `]`, status: 400},
		"null":                              {body: `null`, status: 400},
		"nothing":                           {body: ``, status: 400},
		"two in one":                        {body: right + right, status: 400},
		"a member twice":                    {body: `{"version": 1, "version": 1, "name": "A", "email": "a@x.example"}`, status: 400},
		"a member of another case":          {body: `{"Version": 1, "name": "A", "email": "a@x.example"}`, status: 400},
		"a member that is not taken":        {body: `{"version": 1, "name": "A", "email": "a@x.example", "customer": "cus_x"}`, status: 400},
		"a name with NUL":                   {body: `{"version": 1, "name": "A\u0000", "email": "a@x.example"}`, status: 400},
		"a name of two lines":               {body: `{"version": 1, "name": "A\r\nBcc: b@x.example", "email": "a@x.example"}`, status: 400},
		"a name that turns the text around": {body: `{"version": 1, "name": "A\u202egnp", "email": "a@x.example"}`, status: 400},
		"a name that is too long":           {body: `{"version": 1, "name": "` + strings.Repeat("a", 201) + `", "email": "a@x.example"}`, status: 400},
		"an address with a header":          {body: `{"version": 1, "name": "A", "email": "a@x.example\r\nBcc: b@x.example"}`, status: 400},
		"an address with a name":            {body: `{"version": 1, "name": "A", "email": "A <a@x.example>"}`, status: 400},
		"several addresses":                 {body: `{"version": 1, "name": "A", "email": "a@x.example, b@x.example"}`, status: 400},
		"a lone surrogate":                  {body: `{"version": 1, "name": "A\ud800", "email": "a@x.example"}`, status: 400},
		"bytes that are no text":            {body: "{\"version\": 1, \"name\": \"A\xff\", \"email\": \"a@x.example\"}", status: 400},
		"deep":                              {body: `{"name": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, status: 400},
		"huge":                              {body: `{"name": "` + strings.Repeat("a", 1<<20) + `"}`, status: 413},
		"a little too large":                {body: right + strings.Repeat(" ", 16<<10), status: 413},
		"a form of no answer":               {kind: "application/x-www-form-urlencoded", body: "version=1&name=A&email=a%40x.example", status: 400},
		"a form of a version that is none":  {kind: "application/x-www-form-urlencoded", body: "version=1x&name=A&email=a%40x.example&agreed=true", status: 409},
		"JSON that says it is text":         {kind: "text/plain", body: right, status: 400},
		"JSON that says nothing":            {kind: "-", body: right, status: 400},
		"XML":                               {kind: "application/xml", body: "<a/>", status: 400},
		"by GET":                            {method: http.MethodGet, body: right, status: 405},
		"by PUT":                            {method: http.MethodPut, body: right, status: 405},
		"by DELETE":                         {method: http.MethodDelete, status: 405},
		"by another method said beside it":  {method: http.MethodGet, body: right, header: []string{"X-HTTP-Method-Override", "POST"}, status: 405},
		"from another site":                 {body: right, header: []string{"Sec-Fetch-Site", "cross-site"}, status: 403},
		"from another origin":               {body: right, header: []string{"Origin", "https://evil.example"}, status: 403},
		"from no origin":                    {body: right, header: []string{"Origin", "null"}, status: 403},
		"by a browser that does not say":    {body: right, header: []string{"Cookie", s.cookie + "=" + session}, status: 403},
	} {
		method, kind := c.method, c.kind
		if method == "" {
			method = http.MethodPost
		}
		if kind == "" {
			kind = "application/json"
		}
		a := s.program(method, public+"/accept", strings.TrimPrefix(kind, "-"), c.body, c.header...)
		if a.status != c.status {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
		if strings.Contains(a.body, public) && kind == "application/json" {
			t.Errorf("%s: the answer repeats the link", name)
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: pages of %s may read it", name, got)
		}
	}
	if s.fingerprint() != before {
		t.Error("something was changed")
	}
	s.get(path, session).has(t, "not opened yet")
	if a := s.program(http.MethodPost, public+"/accept", "application/json; charset=utf-8", right); a.status != http.StatusOK {
		t.Errorf("a right one: %d %s", a.status, a.body)
	}
}

func TestAnOfferIsLookedAtByWhomItIsForAndByNobodyElse(t *testing.T) {
	t.Parallel()
	s, session, path, public := outOffer(t)
	for _, header := range [][]string{
		{"Sec-Purpose", "prefetch;prerender"}, {"Purpose", "prefetch"}, {"X-Moz", "prefetch"}, {"Cookie", s.cookie + "=" + session},
	} {
		s.program(http.MethodGet, public, "", "", header...).has(t, "Accept this quote")
	}
	for _, other := range []string{public[:len(public)-1], public + "x", public[:len(public)-1] + "%00", strings.ToLower(public) + "?", "/q/" + strings.Repeat("a", 43), "/q/" + strings.Repeat("a", 100_000)} {
		if a := s.get(other, ""); a.status == http.StatusOK {
			t.Errorf("%.80s: %d", other, a.status)
		}
	}
	if a := s.program(http.MethodHead, public, "", ""); a.status != http.StatusOK || a.body != "" {
		t.Errorf("HEAD: %d", a.status)
	}
	s.get(path, session).has(t, "not opened yet")
	a := s.get(public, "")
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow"} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s.get(path, session).has(t, "opened once")
}

func TestTheLinkOfAQuoteStandsInNoAuditNoMessageAndNoPageOfFailure(t *testing.T) {
	t.Parallel()
	s, session, path, public := outOffer(t)
	s.get(public, "")
	s.post(public+"/decline", "", url.Values{"version": {"1"}, "reason": {"no"}})
	token := strings.TrimPrefix(public, "/q/")
	for _, page := range []string{"/audit", path, "/quotes", "/webhooks"} {
		body := s.get(page, session).body
		if page != path && strings.Contains(body, token) {
			t.Errorf("it stands on %s", page)
		}
	}
	var n int
	s.scan(`select (select count(*) from audit_entries x where x::text like '%`+token+`%') + (select count(*) from webhook_messages x where x::text like '%`+token+`%') + (select count(*) from mails x where x::text like '%`+token+`%') + (select count(*) from quotes x where x::text like '%`+token+`%')`, &n)
	if n != 0 {
		t.Errorf("%d rows hold it", n)
	}
	for _, wrong := range []string{public + "/accept", public + "/no"} {
		if a := s.get(wrong, ""); strings.Contains(a.body, token) {
			t.Errorf("%s: the page of the failure repeats it: %s", wrong, a.body)
		}
	}
}

func TestAnOfferIsAnsweredOnceByFormsAndProgramsAtOnce(t *testing.T) {
	t.Parallel()
	s, _, _, public := outOffer(t)
	yes := url.Values{"version": {"1"}, "name": {"Adaeze Finch"}, "email": {"adaeze@marlow.example"}, "agreed": {"true"}}
	var all sync.WaitGroup
	secrets := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			var a answer
			switch i % 3 {
			case 0:
				a = s.post(public+"/accept", "", yes)
			case 1:
				a = s.program(http.MethodPost, public+"/accept", "application/json", `{"name": "Adaeze Finch", "email": "adaeze@marlow.example"}`)
			default:
				a = s.program(http.MethodPost, public+"/decline", "application/json", `{"reason": "no"}`)
			}
			if a.status >= 500 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if strings.Contains(a.body, tenants.LivePrefix) {
				secrets <- a.body
			}
		})
	}
	all.Wait()
	close(secrets)
	var customers, keys, answers int
	s.scan(`select (select count(*) from customers), (select count(*) from api_keys where kind = 'customer'), (select count(*) from audit_entries where action in ('quote.accepted', 'quote.declined'))`, &customers, &keys, &answers)
	if customers != keys || customers > 1 || len(secrets) != keys || answers != 1 {
		t.Errorf("%d customers, %d keys, %d secrets shown, %d answers", customers, keys, len(secrets), answers)
	}
}
