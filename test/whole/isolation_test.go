package whole

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// TestAnotherTenantsIDsAnswerLikeUnknownOnes asks every route that has an id, by
// every verb and with every kind of credential, for a thing of another tenant
// and for one that does not exist: status, body and effect are the same.
func TestAnotherTenantsIDsAnswerLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	own, other := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)}), weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	settling := weir.Want(t, 201, "POST", "/api/v1/api-keys", own.ManagementKey, fill(`{"kind": "customer", "name": "settles", "customer": "{customer}", "may_settle": true}`, own)).Text("secret")
	credentials := map[string]string{"management key": own.ManagementKey, "customer key": own.Key, "customer key that may settle": settling}
	theirs := map[string]string{}
	for path := range s.Paths {
		if strings.Contains(path, "{id}") {
			theirs[path] = ownID(t, other, path)
		}
	}
	before := rowHashes(t, other)
	for path, foreign := range theirs {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			o, defined := s.Paths[path][strings.ToLower(method)]
			_, example := o.body()
			body := fill(string(example), own)
			for name, key := range credentials {
				at := func(x string) stack.Answer {
					return weir.Call(t, method, strings.Replace(path, "{id}", x, 1), key, body)
				}
				got, unknown := at(foreign), at(unknownLike(foreign))
				what := fmt.Sprintf("%s %s with a %s", method, path, name)
				alike(t, what, got, unknown)
				if defined && name == "management key" && got.Status != 404 {
					t.Errorf("%s: %s, want 404", what, got)
				}
				if got.Status < 400 && method != "OPTIONS" {
					t.Errorf("%s is not refused: %s", what, got)
				}
			}
		}
	}
	if after := rowHashes(t, other); after != before {
		t.Errorf("the other tenant's rows changed:\n%s\n%s", before, after)
	}
}

// TestAnotherTenantsIDsInABodyOrAQueryAnswerLikeUnknownOnes puts ids of another
// tenant wherever the document says that one may stand.
func TestAnotherTenantsIDsInABodyOrAQueryAnswerLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	own, other := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)}), weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	requestOf(t, other)
	other.Pool, other.Webhook = pool(t, other), webhook(t, other)
	before := rowHashes(t, other)
	tried := 0
	s.eachRoute(func(method, path string, o operation) {
		at := strings.Replace(path, "{id}", ownID(t, own, path), 1)
		for _, q := range o.Parameters {
			foreign, isID := idOf(other, q.Name)
			if q.In != "query" || !isID {
				continue
			}
			tried++
			ask := func(x string) stack.Answer { return weir.Call(t, method, at+"?"+q.Name+"="+x, own.ManagementKey, nil) }
			alike(t, method+" "+path+"?"+q.Name, ask(foreign), ask(unknownLike(foreign)))
		}
		x, _ := o.body()
		if x == nil {
			return
		}
		body, names := s.bodyWithIDs(t, o, own)
		for _, name := range names {
			foreign, isID := idOf(other, name)
			if !isID {
				t.Errorf("%s %s: the body names a %s, which these tests do not know", method, path, name)
				continue
			}
			tried++
			ask := func(x string) stack.Answer {
				return weir.Call(t, method, at, own.ManagementKey, body(name, x))
			}
			got, unknown := ask(foreign), ask(unknownLike(foreign))
			alike(t, method+" "+path+" with "+name+" in the body", got, unknown)
			if got.Status != 404 {
				t.Errorf("%s %s with another tenant's %s: %s, want 404", method, path, name, got)
			}
		}
	})
	if tried < 8 {
		t.Errorf("only %d places were tried", tried)
	}
	if after := rowHashes(t, other); after != before {
		t.Errorf("the other tenant's rows changed:\n%s\n%s", before, after)
	}
}

// TestAnotherTenantsModelIsUnknown asks the gateway.
func TestAnotherTenantsModelIsUnknown(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	own, other := weir.Setup(t, stack.Options{Upstream: up}), weir.Setup(t, stack.Options{Upstream: up})
	weir.Want(t, 201, "POST", "/api/v1/provider-keys", other.ManagementKey, fmt.Sprintf(`{"provider": "custom", "name": "second", "base_url": %q, "models": ["their-model"]}`, up.URL))
	weir.Want(t, 200, "GET", "/v1/models/their-model", other.Key, nil)
	alike(t, "GET /v1/models/…", weir.Call(t, "GET", "/v1/models/their-model", own.Key, nil), weir.Call(t, "GET", "/v1/models/there-model", own.Key, nil))
	alike(t, "POST /v1/chat/completions", weir.Want(t, 404, "POST", "/v1/chat/completions", own.Key, chat("their-model")), weir.Call(t, "POST", "/v1/chat/completions", own.Key, chat("there-model")))
	if len(up.Calls()) != 0 {
		t.Errorf("%d calls reached the provider", len(up.Calls()))
	}
}

// TestAnotherTenantsCursorIsNoCursor.
func TestAnotherTenantsCursorIsNoCursor(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	own, other := weir.Setup(t, stack.Options{}), weir.Setup(t, stack.Options{})
	for range 2 {
		weir.AddKey(t, other)
	}
	cursor := weir.Want(t, 200, "GET", "/api/v1/api-keys?limit=1", other.ManagementKey, nil).Text("next_cursor")
	s.eachRoute(func(method, path string, o operation) {
		for _, q := range o.Parameters {
			if q.Name == "cursor" {
				if a := weir.Call(t, method, path+"?cursor="+cursor, own.ManagementKey, nil); a.Status != 400 || a.Text("code") != "invalid_cursor" {
					t.Errorf("%s: %s", path, a)
				}
			}
		}
	})
}

// idOf is the world's own thing of a kind, as queries and bodies name it.
func idOf(w stack.World, name string) (string, bool) {
	known := map[string]string{
		"customer": w.Customer, "plan": w.Plan, "plan_version": w.Version, "from": w.Version, "api_key": w.KeyID, "provider_key": w.ProviderKey, "pool": w.Pool, "subscription": w.Subscription, "endpoint": w.Webhook,
	}
	return known[name], known[name] != ""
}

var exampleID = regexp.MustCompile(`^[a-z]{3}_01`)

// bodyWithIDs is the example body with one member set to an id, and the members
// that take one.
func (s spec) bodyWithIDs(t *testing.T, o operation, w stack.World) (body func(name, value string) string, names []string) {
	t.Helper()
	x, example := o.body()
	var members map[string]any
	if err := json.Unmarshal([]byte(fill(string(example), w)), &members); err != nil {
		t.Fatal(err)
	}
	for name, property := range s.at(x).Properties {
		for _, e := range s.at(property).Examples {
			if text, ok := e.(string); ok && exampleID.MatchString(text) {
				names = append(names, name)
			}
		}
	}
	return func(name, value string) string {
		changed := maps.Clone(members)
		changed[name] = value
		if name == "plan_version" { // stands for the plan
			delete(changed, "plan")
		}
		return render(changed, "", edit{at: "none"})
	}, names
}

// alike compares answers as a caller sees them; what every answer has of its
// own, its request id and its clock, aside.
func alike(t *testing.T, what string, a, b stack.Answer) {
	t.Helper()
	if a.Status != b.Status || anonymous(a.Body) != anonymous(b.Body) || a.Header.Get("Content-Type") != b.Header.Get("Content-Type") {
		t.Errorf("%s tells another tenant's from an unknown one:\n%s\n%s", what, a, b)
	}
}

var (
	own   = regexp.MustCompile(`"(request_id|as_of|from|to)":"[^"]*"`)
	asked = regexp.MustCompile(`the(re|ir)-model`)
)

func anonymous(body []byte) string {
	return asked.ReplaceAllString(own.ReplaceAllString(string(body), `"$1":""`), "model")
}

// unknownLike is an id of the same kind that nobody has.
func unknownLike(x string) string {
	prefix, _, _ := strings.Cut(x, "_")
	return id.Kind(prefix).Format(id.New())
}

// rowHashes is a fingerprint of every row of the tenant, by table. When a key
// was last used is written a while after its use.
func rowHashes(t *testing.T, w stack.World) string {
	t.Helper()
	const each = `select md5(coalesce(string_agg(md5((to_jsonb(x) - ''last_used_at'')::text), '''' order by (to_jsonb(x) - ''last_used_at'')::text), '''')) as h from %I x where tenant_id = %L`
	return stack.Value[string](t, weir, `
		select string_agg(c.relname || ' ' || (xpath('/row/h/text()', query_to_xml(format('`+each+`', c.relname, $1::text), true, true, '')))[1]::text, E'\n' order by c.relname)
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`, tenantUUID(t, w))
}
