package whole

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// TestEveryWrongBodyIsRefusedByNameAndChangesNothing sends, to every route that
// takes a body, every body that is wrong in one place, made from the example and
// the schema of the OpenAPI document.
func TestEveryWrongBodyIsRefusedByNameAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	s.eachRoute(func(method, path string, o operation) {
		x, example := o.body()
		if x == nil {
			return
		}
		t.Run(method+" "+path, func(t *testing.T) {
			t.Parallel()
			w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
			w.Customer = weir.Want(t, 201, "POST", "/api/v1/customers", w.ManagementKey, `{"name": "Bob"}`).Text("id")
			if strings.HasPrefix(path, "/v1/") || path == "/api/v1/overrides" {
				weir.Want(t, 201, "POST", "/api/v1/subscriptions", w.ManagementKey, fill(`{"customer": "{customer}", "plan": "{plan}"}`, w))
			}
			if example == nil {
				t.Fatal("the document has no example of the body")
			}
			var body any
			if err := json.Unmarshal([]byte(fill(withPreview(t, w, path, withReservation(t, w, string(example))), w)), &body); err != nil {
				t.Fatal(err)
			}
			rename(body, w)
			at := strings.Replace(path, "{id}", ownID(t, w, path), 1)
			before := rowCounts(t, w)
			mutants := s.mutants(body, x)
			for _, m := range mutants {
				refusedByName(t, ofItem(t, weir.Call(t, method, at, keyFor(path, w), m.body)), m)
			}
			if after := rowCounts(t, w); after != before {
				t.Errorf("refused bodies changed rows:\n%s\n%s", before, after)
			}
			if a := ofItem(t, weir.Call(t, method, at, keyFor(path, w), render(body, "", edit{at: "none"}))); a.Status/100 != 2 {
				t.Errorf("the example itself is refused: %s", a)
			}
			t.Logf("%d bodies", len(mutants))
		})
	})
}

// withPreview puts another published plan, and the token of a preview of what the
// path is about, into an example.
func withPreview(t *testing.T, w stack.World, path, example string) string {
	t.Helper()
	if !strings.Contains(example, "{preview}") && !strings.Contains(example, "{other_plan}") {
		return example
	}
	if strings.HasPrefix(path, "/api/v1/plans/") {
		token := weir.Want(t, 200, "POST", "/api/v1/plans/"+w.Plan+"/preview-move", w.ManagementKey, `{}`).Text("preview_token")
		return strings.ReplaceAll(example, "{preview}", token)
	}
	other := weir.Want(t, 201, "POST", "/api/v1/plans", w.ManagementKey, `{"name": "Another", "base_fee": {"amount": "900.00", "currency": "USD"}}`).Text("id")
	weir.Want(t, 200, "POST", "/api/v1/plans/"+other+"/publish", w.ManagementKey, nil)
	token := weir.Want(t, 200, "POST", "/api/v1/subscriptions/"+w.Subscription+"/preview-change", w.ManagementKey, `{"plan": "`+other+`"}`).Text("preview_token")
	return strings.NewReplacer("{preview}", token, "{other_plan}", other).Replace(example)
}

// keyFor is the kind of key that a route is for.
func keyFor(path string, w stack.World) string {
	if path == "/v1/client-tokens" {
		return w.Key
	}
	return w.ManagementKey
}

// rename keeps an example from meeting the names that the world has already.
func rename(body any, w stack.World) {
	if o, ok := body.(map[string]any); ok && o["name"] != nil {
		o["name"] = "another-" + w.Tenant
	}
}

// ownID is an object of the world's that a path is about.
func ownID(t *testing.T, w stack.World, path string) string {
	t.Helper()
	switch {
	case !strings.Contains(path, "{id}"):
		return ""
	case strings.HasPrefix(path, "/v1/reservations/"):
		return reservation(t, w)
	case strings.HasPrefix(path, "/api/v1/plans/"):
		return w.Plan
	case strings.HasPrefix(path, "/api/v1/customers/"):
		return w.Customer
	case strings.HasPrefix(path, "/api/v1/subscriptions/"):
		return w.Subscription
	case strings.HasPrefix(path, "/api/v1/quotes/"):
		return weir.Want(t, 201, "POST", "/api/v1/quotes", w.ManagementKey, fill(`{"plan": "{plan}", "to": {"name": "Ann", "email": "ann@example.com"}}`, w)).Text("id")
	case strings.HasPrefix(path, "/api/v1/overrides/"):
		if a := weir.Want(t, 200, "GET", "/api/v1/overrides", w.ManagementKey, nil); a.JSON("data.0.id") != nil {
			return a.Text("data.0.id")
		}
		return weir.Want(t, 201, "POST", "/api/v1/overrides", w.ManagementKey, fill(`{"customer": "{customer}", "limit": {"dimension": "units", "window": "minute", "amount": 8}, "reason": "r"}`, w)).Text("id")
	case strings.HasPrefix(path, "/api/v1/provider-keys/"):
		return w.ProviderKey
	case strings.HasPrefix(path, "/api/v1/pools/"):
		return pool(t, w)
	case strings.HasPrefix(path, "/api/v1/model-aliases/"):
		return weir.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(`{"name": "als-%s", "candidates": [{"model": "m"}]}`, id.New())).Text("id")
	case strings.HasPrefix(path, "/api/v1/api-keys/"):
		return w.KeyID
	case strings.HasPrefix(path, "/api/v1/webhook-endpoints/"):
		return webhook(t, w)
	case strings.HasPrefix(path, "/api/v1/alerts/"):
		return weir.Want(t, 201, "POST", "/api/v1/alerts", w.ManagementKey, `{"dimension": "tokens", "window": "day", "threshold": {"percent": 80}, "channels": ["webhook"]}`).Text("id")
	case strings.HasPrefix(path, "/api/v1/webhook-messages/"):
		return told(t, w)
	case strings.HasPrefix(path, "/api/v1/exports/"):
		return export(t, w)
	case strings.HasPrefix(path, "/api/v1/requests/"):
		return requestOf(t, w)
	}
	t.Fatalf("%s is about something that these tests do not know: teach them", path)
	return ""
}

// webhook is an endpoint that takes everything, and is told only what a test
// asks for.
func webhook(t *testing.T, w stack.World) string {
	t.Helper()
	far := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(far.Close)
	return weir.Want(t, 201, "POST", "/api/v1/webhook-endpoints", w.ManagementKey, fmt.Sprintf(`{"url": %q, "types": ["export.finished"]}`, far.URL)).Text("id")
}

// export is a file that is ready, and of which everybody was told.
func export(t *testing.T, w stack.World) string {
	t.Helper()
	file := weir.Want(t, 202, "POST", "/api/v1/exports", w.ManagementKey, `{"kind": "usage", "format": "csv", "from": "2026-11-01"}`).Text("id")
	stack.Eventually(t, 20*time.Second, func() string {
		a := weir.Want(t, 200, "GET", "/api/v1/exports/"+file, w.ManagementKey, nil)
		waiting := stack.Value[int64](t, weir, `select count(*) from webhook_deliveries where tenant_id = $1 and state = 'waiting'`, tenantUUID(t, w))
		if a.Text("status") != "ready" || waiting > 0 {
			return fmt.Sprintf("%d messages wait: %s", waiting, a)
		}
		return ""
	})
	return file
}

// told is a message that its endpoint has taken.
func told(t *testing.T, w stack.World) string {
	t.Helper()
	msg := weir.Want(t, 202, "POST", "/api/v1/webhook-endpoints/"+webhook(t, w)+"/test", w.ManagementKey, nil).Text("id")
	stack.Eventually(t, 20*time.Second, func() string {
		if a := weir.Want(t, 200, "GET", "/api/v1/webhook-messages/"+msg, w.ManagementKey, nil); a.Text("deliveries.0.state") != "taken" {
			return "the message is not taken: " + a.String()
		}
		return ""
	})
	return msg
}

func pool(t *testing.T, w stack.World) string {
	t.Helper()
	return weir.Want(t, 201, "POST", "/api/v1/pools", w.ManagementKey, fmt.Sprintf(`{"name": "pool %s", "provider": "custom"}`, id.New())).Text("id")
}

func reservation(t *testing.T, w stack.World) string {
	t.Helper()
	return weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, fill(`{"customer": "{customer}", "model": "test-small", "estimate": {"input_tokens": 9}}`, w)).Text("id")
}

// withReservation puts a reservation of the world's into an example that needs
// one.
func withReservation(t *testing.T, w stack.World, example string) string {
	t.Helper()
	if !strings.Contains(example, "{reservation}") {
		return example
	}
	return strings.ReplaceAll(example, "{reservation}", reservation(t, w))
}

// ofItem is what a batch says of its only item, as if that had been sent alone;
// any other answer as it is.
func ofItem(t *testing.T, a stack.Answer) stack.Answer {
	t.Helper()
	var batch struct {
		Results []struct {
			Status json.RawMessage `json:"status"` // of HTTP, or a word
			Error  json.RawMessage `json:"error"`
		} `json:"results"`
	}
	if a.Status != 200 || json.Unmarshal(a.Body, &batch) != nil || len(batch.Results) != 1 {
		return a
	}
	item := stack.Answer{Status: a.Status, Header: a.Header.Clone(), Body: batch.Results[0].Error}
	if json.Unmarshal(batch.Results[0].Status, &item.Status) != nil && len(item.Body) > 0 {
		var problem struct{ Status int }
		if err := json.Unmarshal(item.Body, &problem); err != nil {
			t.Errorf("%v: %s", err, a)
		}
		item.Status = problem.Status
	}
	if item.Status >= 400 {
		item.Header.Set("Content-Type", "application/problem+json")
		item.Header.Set("X-Request-Id", item.Text("request_id"))
	}
	return item
}

// requestOf makes a call and waits until its request can be read.
func requestOf(t *testing.T, w stack.World) string {
	t.Helper()
	a := weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("test-small"))
	request := a.Header.Get("X-Request-Id")
	stack.Eventually(t, patience, func() string {
		if a := weir.Call(t, "GET", "/api/v1/requests/"+request, w.ManagementKey, nil); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	return request
}

var snake = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// idMember is a member that names a thing: a text that is no id answers as one
// that does not exist, without saying which of the two.
var idMember = regexp.MustCompile(`^(/\w+/0)?/(customer|plan|plan_version|pool|provider_key|api_key|subscription|id)$`)

func refusedByName(t *testing.T, a stack.Answer, m mutant) {
	t.Helper()
	var p struct {
		Title, Detail, Code string
		Status              int
		RequestID           string `json:"request_id"`
		Errors              []struct{ Pointer, Code, Message string }
	}
	fail := func(why string) { t.Errorf("%s: %s: %d %s", m.what, why, a.Status, brief(string(a.Body))) }
	if a.Status < 400 || a.Status > 499 {
		fail("not refused")
		return
	}
	if err := json.Unmarshal(a.Body, &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		fail("no problem+json")
		return
	}
	if p.Status != a.Status || p.Title == "" || !snake.MatchString(p.Code) || p.RequestID != a.Header.Get("X-Request-Id") || !plainWords(p.Detail) {
		fail("not what a problem says")
	}
	if a.Status == 413 || a.Status == 404 && idMember.MatchString(m.pointer) {
		return
	}
	for _, e := range p.Errors {
		if !snake.MatchString(e.Code) || !plainWords(e.Message) {
			fail("an error without code or reason")
		}
		if e.Pointer != "" && (e.Pointer == m.pointer || strings.HasPrefix(m.pointer, e.Pointer+"/") || m.deeper && strings.HasPrefix(e.Pointer, m.pointer+"/")) {
			return
		}
	}
	fail("does not name the member")
}

// plainWords tells a sentence from a code or an internal error's text.
func plainWords(s string) bool {
	return len(s) > 10 && len(s) < 600 && strings.Contains(s, " ") && strings.HasSuffix(s, ".") && !strings.ContainsFunc(s, unicode.IsControl) &&
		!regexp.MustCompile(`json|Go |struct|sql|uuid|pgx`).MatchString(strings.NewReplacer("JSON", "", "csv or json", "").Replace(s))
}

// rowCounts is how many rows of the tenant each table has.
func rowCounts(t *testing.T, w stack.World) string {
	t.Helper()
	return stack.Value[string](t, weir, `
		select string_agg(c.relname || ' ' || (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I where tenant_id = %L', c.relname, $1::text), true, true, '')))[1]::text, ', ' order by c.relname)
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`, tenantUUID(t, w))
}

func tenantUUID(t *testing.T, w stack.World) string {
	t.Helper()
	u, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}
