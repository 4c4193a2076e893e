package whole

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestSecretsAppearNowhere has calls fail in every way there is, and then looks
// for every secret of the installation and of one tenant in everything that can
// be read: answers, pages, logs, all rows of the database, all files.
func TestSecretsAppearNowhere(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 100}}})
	c := canary{t: t, w: w, secrets: map[string]string{
		"provider key": w.ProviderSecret, "API key": w.Key, "management key": w.ManagementKey, "sign-in link": filepath.Base(w.SignInLink),
		"API key in a URL": "sk-in-the-url-5fFJq2", "provider key that was not taken": "sk-refused-8Gk1Zq", "password in a URL": "pass-in-base-url-2kX",
		"API key nobody has": "weir_live_000000000000000000000000000000000000",
	}}
	c.ownKeys()
	c.fail(up)
	c.pages()
	c.settled()
	c.logs()
	c.rows()
	c.files()
}

type canary struct {
	t       *testing.T
	w       stack.World
	secrets map[string]string
	request string // the id of a call, which the logs have
}

// ownKeys adds the keys of the installation itself.
func (c *canary) ownKeys() {
	raw, err := os.ReadFile(filepath.Join(weir.Dir, "secrets.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var keys map[string]string
	if err := json.Unmarshal(raw, &keys); err != nil || len(keys) != 3 {
		c.t.Fatal(keys, err)
	}
	for name, text := range keys {
		_, key, found := strings.Cut(text, ":")
		if !found {
			key = text
		}
		c.secrets["installation's "+name] = key
		bytes, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			c.t.Fatal(err)
		}
		c.secrets["installation's "+name+", raw"] = string(bytes)
	}
}

// fail makes calls that go wrong, and looks at every answer.
func (c *canary) fail(up *upstreamtest.Upstream) {
	stream := strings.Replace(chat("test-small"), "{", `{"stream": true, `, 1)
	echoed := upstreamtest.EchoKey(400).Body
	scripts := []upstreamtest.Script{
		upstreamtest.EchoKey(401), upstreamtest.EchoKey(403), upstreamtest.EchoKey(400), upstreamtest.EchoKey(404), upstreamtest.EchoKey(422), upstreamtest.EchoKey(429), upstreamtest.EchoKey(500), upstreamtest.EchoKey(200),
		upstreamtest.NotJSON(), upstreamtest.ErrorInside200(), upstreamtest.Redirect(up.URL + "?key=" + c.w.ProviderSecret),
		{Header: http.Header{"X-Echo": {c.w.ProviderSecret}, "Set-Cookie": {"key=" + c.w.ProviderSecret}, "Openai-Organization": {c.w.ProviderSecret}}},
		{Status: 400, Body: strings.ReplaceAll(strings.ReplaceAll(echoed, `"message":`, `"text":`), "%KEY%", c.w.ProviderSecret)},
		{Status: 400, Body: `{"error":"` + c.w.ProviderSecret + `"}`},
		{Status: 400, Body: `{"error":{"message":"No","type":"` + c.w.ProviderSecret + `","param":"` + c.w.ProviderSecret + `","code":"` + c.w.ProviderSecret + `"}}`},
	}
	for _, s := range scripts {
		for _, body := range []string{chat("test-small"), stream} {
			c.do("POST", "/api/v1/cooldowns/clear", c.w.ManagementKey, nil) // the call before may have left the key cooling
			up.Next(s)
			c.look("call", c.do("POST", "/v1/chat/completions", c.w.Key, body))
		}
	}
	up.Next(upstreamtest.Script{Events: []string{`{"error":{"message":"Bad key ` + c.w.ProviderSecret + `"}}`}}, upstreamtest.Script{Cut: 2})
	for range 2 {
		c.do("POST", "/api/v1/cooldowns/clear", c.w.ManagementKey, nil)
		c.look("stream", c.do("POST", "/v1/chat/completions", c.w.Key, stream))
	}
	c.do("POST", "/api/v1/cooldowns/clear", c.w.ManagementKey, nil)
	c.request = c.do("POST", "/v1/chat/completions", c.w.Key, chat("test-small")).Header.Get("X-Request-Id")
	token := c.do("POST", "/v1/client-tokens", c.w.Key, `{"expires_in": 900}`).Text("token")
	if c.secrets["client token"] = token; c.do("POST", "/v1/chat/completions", token, chat("test-small")).Status != 200 {
		c.t.Error("a client token does not serve")
	}
	for _, key := range []string{token + "x", token[:len(token)-9], c.secrets["API key nobody has"], c.w.Key + "x", c.w.ManagementKey, "Bearer " + c.w.Key} {
		c.look("call with a wrong key", c.do("POST", "/v1/chat/completions", key, chat("test-small")))
		c.look("REST with a wrong key", c.do("GET", "/api/v1/customers", c.w.Key, nil))
	}
	for _, path := range []string{"/v1/models?api_key=", "/v1/nothing?key=", "/api/v1/me?token=", "/api/v1/customers?access_token=", "/nothing?api_key="} {
		c.look("key in the URL", c.do("GET", path+url.QueryEscape(c.secrets["API key in a URL"]), c.w.Key, nil))
	}
	refused, password := c.secrets["provider key that was not taken"], c.secrets["password in a URL"]
	for _, body := range []string{
		`{"provider": "custom", "name": "x", "base_url": "https://u:` + password + `@example.com", "secret": "` + refused + `"}`,
		`{"provider": "custom", "name": "main", "base_url": "` + up.URL + `", "secret": "` + refused + `"}`,
		`{"provider": "custom", "name": "x", "secret": "` + refused + ` "}`,
		`{"provider": "custom", "name": "x", "secret": "` + refused + `", "secret": "` + refused + `"}`,
		`{"provider": "custom", "name": "x", "Secret": "` + refused + `"}`,
		`{"provider": "custom", "name": "x", "secret": ["` + refused + `"]}`,
		`{"provider": "custom", "name": "x", "secret": "` + refused,
		`{"provider": "practice", "name": "x", "secret": "` + refused + `"}`,
		`{"provider": "custom", "name": "nobody", "base_url": "http://127.0.0.1:1/v1", "secret": "` + refused + `", "models": ["nobody"]}`,
	} {
		c.look("provider key", c.do("POST", "/api/v1/provider-keys", c.w.ManagementKey, body))
	}
	c.look("call to nobody", c.do("POST", "/v1/chat/completions", c.w.Key, chat("nobody")))
	for _, path := range []string{"/api/v1/me", "/api/v1/provider-keys", "/api/v1/provider-keys/" + c.w.ProviderKey, "/api/v1/api-keys", "/api/v1/requests", "/v1/limits?customer=" + c.w.Customer, "/openapi.json"} {
		c.look(path, c.do("GET", path, c.w.ManagementKey, nil))
	}
	revoked := c.do("POST", "/api/v1/api-keys/"+c.w.KeyID+"/revoke", c.w.ManagementKey, nil)
	c.look("revoked key", revoked)
	stack.Eventually(c.t, patience, func() string {
		a := c.do("POST", "/v1/chat/completions", c.w.Key, chat("test-small"))
		c.look("call with a revoked key", a)
		if a.Status != 401 {
			return a.String()
		}
		return ""
	})
}

func (c *canary) do(method, path, key string, body any) stack.Answer {
	c.t.Helper()
	return weir.Call(c.t, method, path, key, body)
}

// look searches an answer, headers included.
func (c *canary) look(what string, a stack.Answer) {
	c.t.Helper()
	var head bytes.Buffer
	_ = a.Header.Write(&head) // into memory
	c.search(what, append(head.Bytes(), a.Body...))
}

var links = regexp.MustCompile(`href="(/[^"#]*)`)

// pages signs in as a person and reads every page that links lead to.
func (c *canary) pages() {
	link := c.secrets["sign-in link"]
	form := url.Values{"token": {link}}.Encode()
	req, err := weir.Request(c.t.Context(), "POST", "/sign-in", "", form)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	a, err := weir.Send(req)
	if err != nil || a.Status != 303 {
		c.t.Fatalf("sign in: %s %v", a, err)
	}
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	_, c.secrets["session"], _ = strings.Cut(cookie, "=")
	todo, seen := []string{"/", "/sign-in", "/sign-in/" + strings.Repeat("A", 43), "/docs", "/nothing"}, map[string]bool{}
	for len(todo) > 0 && len(seen) < 100 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		req, err := weir.Request(c.t.Context(), "GET", path, "", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		req.Header.Set("Cookie", cookie)
		a, err := weir.Send(req)
		if err != nil || a.Status >= 500 {
			c.t.Errorf("%s: %s %v", path, a, err)
		}
		c.look("page "+path, a)
		for _, m := range links.FindAllStringSubmatch(string(a.Body), -1) {
			todo = append(todo, m[1])
		}
	}
	if len(seen) < 6 {
		c.t.Errorf("only these pages were seen: %v", seen)
	}
}

// settled waits until everything that happened is in the books.
func (c *canary) settled() {
	tenant := tenantUUID(c.t, c.w)
	stack.Eventually(c.t, patience, func() string {
		if n := stack.Value[int](c.t, weir, `select count(*)::int from usage_events where tenant_id = $1`, tenant); n < 30 {
			return fmt.Sprintf("%d events in the books", n)
		}
		return ""
	})
}

func (c *canary) logs() {
	log := weir.Log.String()
	if !strings.Contains(log, c.request) {
		c.t.Error("the log says nothing of a call")
	}
	c.search("the log", []byte(log))
}

// rows reads every table, every column as text.
func (c *canary) rows() {
	tables := stack.Rows[string](c.t, weir, `select quote_ident(relname) from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`)
	found := 0
	for _, table := range tables {
		for _, row := range stack.Rows[string](c.t, weir, `select x::text from `+table+` x`) {
			if strings.Contains(row, tenantUUID(c.t, c.w)) {
				found++
			}
			c.search("table "+table, []byte(row))
		}
	}
	if found < 30 {
		c.t.Errorf("only %d rows of the tenant were seen", found)
	}
}

// files reads every file of the installation. Two of them are where its own
// keys live, for nobody but the account that runs it.
func (c *canary) files() {
	seen := 0
	err := filepath.WalkDir(weir.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a database's files come and go
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		seen++
		name, _ := filepath.Rel(weir.Dir, path)
		if name == "secrets.json" || name == "stack.json" {
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
				c.t.Errorf("%s: mode %v %v", name, info.Mode(), err)
			}
			raw = c.withoutOwn(raw)
		}
		c.search("file "+name, raw)
		return nil
	})
	if err != nil || seen < 100 {
		c.t.Errorf("%d files were seen: %v", seen, err)
	}
}

func (c *canary) withoutOwn(raw []byte) []byte {
	for name, secret := range c.secrets {
		if strings.HasPrefix(name, "installation's ") {
			raw = bytes.ReplaceAll(raw, []byte(secret), nil)
		}
	}
	return raw
}

// search looks for every secret, as it is and in the forms in which bytes are
// shown.
func (c *canary) search(where string, in []byte) {
	c.t.Helper()
	for name, secret := range c.secrets {
		for _, form := range forms(secret) {
			if at := bytes.Index(in, form); at >= 0 {
				c.t.Errorf("the %s is in %s: …%q…", name, where, in[max(0, at-60):min(len(in), at+len(form)+20)])
			}
		}
	}
}

func forms(secret string) [][]byte {
	b := []byte(secret)
	out := [][]byte{b, []byte(hex.EncodeToString(b))}
	for shift := range 3 { // wherever it stands in a longer text
		e := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), b...))
		out = append(out, []byte(e[(shift*8+5)/6:len(e)-2]))
	}
	return out
}
