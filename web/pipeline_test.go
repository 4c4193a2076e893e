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
	made, session := s.as("owner")
	other := s.tenant("Bolt", "bo@bolt.example").Tenant.ID.String()
	gone, runs, letter, forged := id.New().String(), id.New().String(), id.New().String(), id.New().String()
	s.super(`insert into instances (instance_id, host, started_at, seen_at, numbers, fresh_at) values
		($1, 'api-gone', now() - interval '1 day', now() - interval '1 hour', '{0,40}', now() - interval '1 hour'), ($2, 'api-runs', now() - interval '1 day', now(), '{7}', now())`, gone, runs)
	s.super(`insert into usage_marks (instance_id, shard, committed) values ($1, 1, '{[1,31)}'), ($2, 0, '{[1,8)}')`, gone, runs)
	s.super(`insert into dead_letters (dead_letter_id, reason, subject, headers, payload, instance_id, shard, number) values
		($1, 'absurd_time', 'usage.v1.1', '{}', '{"tenant":"`+other+`","name":"<script>alert(1)</script>"}', $3, 1, 12), ($2, 'bad_signature', 'usage.v1.2', '{}', '\xff00', null, null, null)`, letter, forged, gone)
	for _, path := range []string{"/pipeline", "/pipeline/letters/" + letter} {
		if a := s.get(path, session); a.status != http.StatusNotFound || strings.Contains(a.body, "api-gone") {
			t.Errorf("%s of another tenant: %d", path, a.status)
		}
	}
	if a := s.post("/pipeline/retire", session, url.Values{"instance": {gone}}); a.status != http.StatusNotFound {
		t.Errorf("another tenant retires: %d", a.status)
	}
	s.get("/", session).hasNot(t, `href="/pipeline"`)
	s.super(`update usage_marks set events_again = 7, messages_again = 3 where shard = 1`)
	s.super(`update instances set adopted_by = $1, adopted_at = now() where host = 'api-gone'`, runs)
	s.super(`update tenants set is_operator = true where name <> 'Bolt'`)
	page := s.get("/pipeline", session)
	page.has(t, "10 events are on their way", "api-gone", "gone, events are missing", "shard 1: 10 of 40 missing, all up to 30 are there", "api-runs", "of an absurd time", "not signed by a key", `href="/pipeline"`)
	page.hasNot(t, "<script>alert", `value="`+runs+`"`)
	page.has(t, "Seen again", ">7</p>", "3 whole messages", "adopted by api-runs, "+runs)
	s.get("/pipeline/letters/"+letter, session).hasNot(t, "alert(1)")
	s.post("/pipeline/letters/"+letter, session, url.Values{"reason": {" "}}).has(t, "Say why you read it")
	one := s.post("/pipeline/letters/"+letter, session, url.Values{"reason": {"ticket 4711"}})
	one.has(t, "&lt;script&gt;alert(1)&lt;/script&gt;", "Try to count it", "number 12")
	one.hasNot(t, "<script>alert")
	for tenant, kind := range map[string]string{other: "operator", made.Tenant.ID.String(): "user"} {
		var n int
		if s.scan(`select count(*) from audit_entries where action = 'dead_letter.read' and tenant_id = '`+tenant+`' and actor_kind = '`+kind+`' and object = '`+letter+`' and difference ->> 'why' = 'ticket 4711' and (ip is null) = ('`+kind+`' = 'operator')`, &n); n != 1 {
			t.Errorf("%d notes that the %s read it", n, kind)
		}
	}
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
