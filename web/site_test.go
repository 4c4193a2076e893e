package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/capacity"
	"weir/internal/catalogue"
	"weir/internal/exports"
	"weir/internal/httpapi"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/portal"
	"weir/internal/postgres/postgrestest"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

const local = "http://127.0.0.1:8080"

// noon is a Monday in winter; in Berlin it is 13:00.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// site is the pages over a real database.
type site struct {
	t       *testing.T
	clock   *clock
	db      postgrestest.Database
	tenants *tenants.Service
	billing *billing.Service
	engine  *limits.Memory
	server  *httptest.Server
	outbox  *notify.Outbox
	notify  *notify.Service
	portal  *portal.Service
	cookie  string // its name
	first   string // the token of the first visit
	routes  []*echo.Route
}

func newSite(t *testing.T, publicURL string) site {
	t.Helper()
	db, c := postgrestest.New(t), &clock{t: noon}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	s := tenants.New(db.App, ring, guard, catalogue.NewClient(guard), c.now)
	plans, reports := billing.New(db.App, c.now), usage.NewReports(db.App, c.now)
	log, sessions, outbox := slog.New(slog.DiscardHandler), auth.NewSessions(db.App, c.now), &notify.Outbox{}
	engine := limits.NewMemory(limits.MemoryOptions{Now: c.now, Started: c.now()})
	accounts := auth.NewAccounts(db.App, s, sessions, outbox, publicURL, log, c.now)
	first, token := auth.NewFirst(accounts)
	tokens, err := auth.NewTokenKeys([]auth.Secret{{ID: "a", Bytes: []byte("a secret of thirty-two characters")}}, publicURL, c.now)
	must(t, err)
	teller := notify.New(db.App, s, guard, c.now)
	door := portal.New(db.App, s, teller, outbox, publicURL, log, c.now)
	load := capacity.New(s, plans, c.now)
	pages, err := New(Deps{
		Capacity: load, Quotes: quotes.New(db.App, s, plans, teller, door, load, publicURL, c.now),
		Directory: auth.NewDirectory(db.App, s, plans, tokens, c.now), Tokens: tokens,
		Log: log, Sessions: sessions, Tenants: s, Outbox: outbox, SignUp: true, First: first, Accounts: accounts, Billing: plans, Limits: engine, Reports: reports, Pipeline: usage.NewPipeline(db.App), Exports: exports.New(db.App, s, reports, c.now), Catalogue: catalogue.New(db.App, tenants.Audit), Notify: teller, Portal: door, Brands: branding.New(db.App, c.now),
		PublicURL: publicURL, OpenAPI: openAPI(t), Now: c.now,
	})
	must(t, err)
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Header().Set(echo.HeaderXRequestID, id.Request.Format(id.New()))
			return next(c)
		}
	})
	pages.Mount(e)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return site{t, c, db, s, plans, engine, server, outbox, teller, door, pages.cookie.name, token, e.Routes()}
}

var openAPIOnce = sync.OnceValues(func() ([]byte, error) {
	s, err := httpapi.New(httpapi.Deps{})
	if err != nil {
		return nil, err
	}
	return s.OpenAPI(), nil
})

func openAPI(t *testing.T) []byte {
	t.Helper()
	doc, err := openAPIOnce()
	must(t, err)
	return doc
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tenant makes one, in Berlin.
func (s site) tenant(name, email string) tenants.Created {
	s.t.Helper()
	made, err := s.tenants.Create(s.t.Context(), tenants.NewTenant{Name: name, OwnerEmail: email, Zone: "Europe/Berlin", Currency: "EUR"})
	must(s.t, err)
	return made
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (s site) do(method, path string, form url.Values, header map[string]string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(form.Encode()))
	must(s.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return s.answer(req)
}

func (s site) answer(req *http.Request) answer {
	s.t.Helper()
	res, err := s.server.Client().Do(req)
	must(s.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(s.t, err)
	return answer{res.StatusCode, res.Header, string(body)}
}

func (s site) get(path, session string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil, s.with(session))
}

// post sends a form as a browser does from one of our own pages.
func (s site) post(path, session string, form url.Values) answer {
	s.t.Helper()
	header := s.with(session)
	header["Sec-Fetch-Site"] = "same-origin"
	return s.do(http.MethodPost, path, form, header)
}

func (s site) with(session string) map[string]string {
	if session == "" {
		return map[string]string{}
	}
	return map[string]string{"Cookie": s.cookie + "=" + session}
}

// signIn uses a link up and returns the session's token.
func (s site) signIn(link string) string {
	s.t.Helper()
	a := s.post("/sign-in", "", url.Values{"token": {link}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/" {
		s.t.Fatalf("sign in: %d %s", a.status, a.body)
	}
	return a.cookie(s.t, s.cookie).Value
}

func (a answer) cookie(t *testing.T, name string) *http.Cookie {
	t.Helper()
	for _, line := range a.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		must(t, err)
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cookie %s in %v", name, a.header)
	return nil
}

// super runs SQL that no role of ours may.
func (s site) super(sql string, args ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.db.SuperURL)
	must(s.t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(s.t.Context(), sql, args...)
	must(s.t, err)
}

// scan reads one row as no role of ours may.
func (s site) scan(sql string, into ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.db.SuperURL)
	must(s.t, err)
	defer conn.Close(context.Background())
	must(s.t, conn.QueryRow(s.t.Context(), sql).Scan(into...))
}

// fingerprint is a hash of every row of every table.
func (s site) fingerprint() string {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.db.SuperURL)
	must(s.t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(s.t.Context(), `
		select relname from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
		order by relname`)
	must(s.t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(s.t, err)
	sum := sha256.New()
	for _, table := range tables {
		rows, err := conn.Query(s.t.Context(), "select x::text from "+pgx.Identifier{table}.Sanitize()+" x order by 1")
		must(s.t, err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(s.t, err)
		sum.Write([]byte(table + "\n" + strings.Join(all, "\n") + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (a answer) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}

func (a answer) hasNot(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if bytes.Contains([]byte(a.body), []byte(w)) {
			t.Errorf("the page says %q", w)
		}
	}
}
