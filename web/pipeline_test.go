package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/internal/id"
)

// TestTheOperatorSeesThePipelineAndSaysWhatIsGone: instances with what is missing
// of them, dead letters with what came, each with the one thing that can be done;
// every word of it in the audit.
func TestTheOperatorSeesThePipelineAndSaysWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	gone, runs, letter, forged := id.New().String(), id.New().String(), id.New().String(), id.New().String()
	s.super(`insert into instances (instance_id, host, started_at, seen_at, numbers, fresh_at) values
		($1, 'api-gone', now() - interval '1 day', now() - interval '1 hour', '{0,40}', now() - interval '1 hour'), ($2, 'api-runs', now() - interval '1 day', now(), '{7}', now())`, gone, runs)
	s.super(`insert into usage_marks (instance_id, shard, committed) values ($1, 1, '{[1,31)}'), ($2, 0, '{[1,8)}')`, gone, runs)
	s.super(`insert into dead_letters (dead_letter_id, reason, subject, headers, payload, instance_id, shard, number) values
		($1, 'absurd_time', 'usage.v1.1', '{}', '{"name":"<script>alert(1)</script>"}', $3, 1, 12), ($2, 'bad_signature', 'usage.v1.2', '{}', '\xff00', null, null, null)`, letter, forged, gone)
	for _, path := range []string{"/pipeline", "/pipeline/letters/" + letter} {
		if a := s.get(path, session); a.status != http.StatusNotFound || strings.Contains(a.body, "api-gone") {
			t.Errorf("%s of another tenant: %d", path, a.status)
		}
	}
	if a := s.post("/pipeline/retire", session, url.Values{"instance": {gone}}); a.status != http.StatusNotFound {
		t.Errorf("another tenant retires: %d", a.status)
	}
	s.get("/", session).hasNot(t, `href="/pipeline"`)
	s.super(`update tenants set is_operator = true`)
	page := s.get("/pipeline", session)
	page.has(t, "10 events are on their way", "api-gone", "gone, events are missing", "shard 1: 10 of 40 missing, all up to 30 are there", "api-runs", "of an absurd time", "not signed by a key", `href="/pipeline"`)
	page.hasNot(t, "<script>alert", `value="`+runs+`"`)
	one := s.get("/pipeline/letters/"+letter, session)
	one.has(t, "&lt;script&gt;alert(1)&lt;/script&gt;", "Try to count it", "number 12")
	one.hasNot(t, "<script>alert")
	s.get("/pipeline/letters/"+forged, session).hasNot(t, "Try to count it")
	if a := s.post("/pipeline/replay", session, url.Values{"letter": {letter}}); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.post("/pipeline/replay", session, url.Values{"letter": {letter}}); a.status != http.StatusConflict {
		t.Errorf("asked twice: %d", a.status)
	}
	s.get("/pipeline/letters/"+letter+"?done=letter-asked", session).has(t, "is being tried", "A worker tries to count it")
	if a := s.post("/pipeline/retire", session, url.Values{"instance": {runs}}); a.status != http.StatusConflict {
		t.Errorf("one that runs is retired: %d", a.status)
	}
	if a := s.post("/pipeline/retire", session, url.Values{"instance": {gone}}); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.get("/pipeline", session).has(t, "The books have every event but dead letters.", "retired")
	s.super(`update members set role = 'viewer'`)
	if a := s.get("/pipeline/letters/"+letter, session); a.status != http.StatusForbidden || strings.Contains(a.body, `href="/pipeline"`) {
		t.Errorf("a viewer of the operator's: %d", a.status)
	}
	var notes int
	s.scan(`select count(*) from audit_entries where action in ('instance.retired', 'dead_letter.replayed')`, &notes)
	if notes != 2 {
		t.Errorf("%d notes in the audit", notes)
	}
}
