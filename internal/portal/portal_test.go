package portal_test

import (
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

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

// house is two tenants' customers and the way in.
type house struct {
	t       *testing.T
	db      postgrestest.Database
	clock   *clock
	outbox  *notify.Outbox
	tenants *tenants.Service
	teller  *notify.Service
	portal  *portal.Service
}

func newHouse(t *testing.T) house {
	t.Helper()
	db, c, outbox := postgrestest.New(t), &clock{t: time.Now()}, &notify.Outbox{}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	s := tenants.New(db.App, ring, nil, nil, c.now)
	teller := notify.New(db.App, s, nil, c.now)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return house{t, db, c, outbox, s, teller, portal.New(db.App, s, teller, outbox, "https://weir.example/", log, c.now)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func (h house) tenant(name string) uuid.UUID {
	h.t.Helper()
	made, err := h.tenants.Create(h.t.Context(), tenants.NewTenant{Name: name, OwnerEmail: "owner@" + strings.ToLower(name) + ".example"})
	must(h.t, err)
	return made.Tenant.ID
}

func (h house) customer(tenant uuid.UUID, name, email string) uuid.UUID {
	h.t.Helper()
	c, err := h.tenants.AddCustomer(h.t.Context(), tenant, tenants.NewCustomer{Name: name, Email: email})
	must(h.t, err)
	return c.ID
}

var linkIn = regexp.MustCompile(`https://weir\.example/portal/in/([A-Za-z0-9_-]{43})`)

// token is that of a link.
func token(t *testing.T, text string) string {
	t.Helper()
	m := linkIn.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no link in %q", text)
	}
	return m[1]
}

func (h house) link(tenant, customer uuid.UUID) string {
	h.t.Helper()
	link, err := h.portal.MakeLink(h.t.Context(), tenant, customer)
	must(h.t, err)
	return token(h.t, link.URL)
}

func (h house) signIn(tenant, customer uuid.UUID) string {
	h.t.Helper()
	issued, err := h.portal.SignIn(h.t.Context(), h.link(tenant, customer), "test", "192.0.2.1")
	must(h.t, err)
	return issued.Token
}

// deliver sends what is owed, and waits until there are n mails.
func (h house) deliver(n int) []notify.Mail {
	h.t.Helper()
	d := notify.NewDeliverer(h.teller, h.outbox, slog.New(slog.NewTextHandler(h.t.Output(), nil)))
	stop := make(chan struct{})
	ctx := h.t.Context()
	go func() { defer close(stop); _ = d.Run(ctx) }()
	return h.mails(n)
}

func (h house) mails(n int) []notify.Mail {
	h.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(h.outbox.Messages()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("%d mails, not %d", len(h.outbox.Messages()), n)
		}
	}
	return h.outbox.Messages()
}

func TestALinkSignsInOnceHoweverManyUseItAtOnce(t *testing.T) {
	h := newHouse(t)
	acme := h.tenant("Acme")
	kestrel := h.customer(acme, "Kestrel", "ann@kestrel.example")
	link := h.link(acme, kestrel)
	won := make(chan portal.Issued, 8)
	var group sync.WaitGroup
	for range cap(won) {
		group.Go(func() {
			if issued, err := h.portal.SignIn(t.Context(), link, "", ""); err == nil {
				won <- issued
			} else if code(err) != "token_invalid" {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Fatalf("%d sessions", len(won))
	}
	v, err := h.portal.Visitor(t.Context(), (<-won).Token, true)
	if err != nil || v.Tenant != acme || v.Customer != kestrel || v.Name != "Kestrel" || v.Suspended {
		t.Fatalf("got %+v, %v", v, err)
	}
}

func TestALinkEndsAfterHalfAnHourAndOneOfAnAcceptedQuoteAfterAWeek(t *testing.T) {
	h := newHouse(t)
	acme := h.tenant("Acme")
	kestrel := h.customer(acme, "Kestrel", "")
	late := h.link(acme, kestrel)
	h.clock.advance(portal.LinkLifetime)
	if _, err := h.portal.SignIn(t.Context(), late, "", ""); code(err) != "token_invalid" {
		t.Fatalf("after half an hour: %v", err)
	}
	must(t, h.db.App.WithTenant(t.Context(), acme, func(tx pgx.Tx) error {
		return h.portal.OweLink(t.Context(), tx, acme, kestrel, "bob@kestrel.example", portal.Accepted)
	}))
	m := h.deliver(1)[0]
	if m.To != "bob@kestrel.example" || !strings.Contains(m.Text, "7 days") {
		t.Fatalf("got %+v", m)
	}
	h.clock.advance(portal.AcceptedLifetime - time.Minute)
	issued, err := h.portal.SignIn(t.Context(), token(t, m.Text), "", "")
	must(t, err)
	if v, err := h.portal.Visitor(t.Context(), issued.Token, true); err != nil || v.Email != "bob@kestrel.example" {
		t.Fatalf("got %+v, %v", v, err)
	}
	h.clock.advance(2 * time.Minute)
	if _, err := h.portal.SignIn(t.Context(), token(t, m.Text), "", ""); code(err) != "token_invalid" {
		t.Fatalf("used again: %v", err)
	}
}

func TestNoLinkAndNoSessionStandsReadableInTheDatabase(t *testing.T) {
	h := newHouse(t)
	acme := h.tenant("Acme")
	kestrel := h.customer(acme, "Kestrel", "ann@kestrel.example")
	_, err := h.portal.SendLink(t.Context(), acme, kestrel)
	must(t, err)
	session := h.signIn(acme, kestrel)
	before := h.everything()
	link := token(t, h.deliver(1)[0].Text)
	for what, all := range map[string]string{"while the mail is owed": before, "when it is sent": h.everything()} {
		if strings.Contains(all, link) || strings.Contains(all, session) {
			t.Errorf("%s, the database holds a secret", what)
		}
	}
}

// everything is every row of the tables that a link or session could stand in.
func (h house) everything() (all string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.db.SuperURL)
	must(h.t, err)
	defer conn.Close(h.t.Context())
	for _, table := range []string{"mails", "portal_links", "portal_sessions", "audit_entries", "webhook_messages"} {
		var text string
		must(h.t, conn.QueryRow(h.t.Context(), "select coalesce(string_agg(x::text, chr(10)), '') from "+table+" x").Scan(&text))
		all += text
	}
	return all
}

func TestWhoAsksGetsALinkForEachOfTheirCustomersAndAStrangerTheSameAnswer(t *testing.T) {
	h := newHouse(t)
	acme, other := h.tenant("Acme"), h.tenant("Other")
	h.customer(acme, "Kestrel", "Ann@kestrel.example")
	h.customer(other, "Kestrel GmbH", "ann@kestrel.example")
	h.customer(other, "Heron", "bob@heron.example")
	must(t, h.portal.Ask(t.Context(), "nobody@kestrel.example", "192.0.2.1"))
	must(t, h.portal.Ask(t.Context(), "ann@KESTREL.example", "192.0.2.1"))
	m := h.mails(1)[0]
	found := linkIn.FindAllStringSubmatch(m.Text, -1)
	if m.To != "ann@KESTREL.example" || len(found) != 2 || strings.Contains(m.Text, "Heron") || !strings.Contains(m.Text, "Kestrel GmbH at Other") {
		t.Fatalf("got %+v", m)
	}
	seen := map[uuid.UUID]bool{}
	for _, f := range found {
		issued, err := h.portal.SignIn(t.Context(), f[1], "", "")
		must(t, err)
		v, err := h.portal.Visitor(t.Context(), issued.Token, true)
		must(t, err)
		seen[v.Tenant] = true
	}
	if !seen[acme] || !seen[other] {
		t.Fatal("the links lead to one tenant only")
	}
}

func TestAskingTooOftenIsLimitedByAddressAndByNetwork(t *testing.T) {
	h := newHouse(t)
	for range 10 {
		must(t, h.portal.Ask(t.Context(), "ann@kestrel.example", "192.0.2.1"))
	}
	if err := h.portal.Ask(t.Context(), "Ann@Kestrel.example", "198.51.100.9"); code(err) != "too_many_attempts" || fault.Of(err).RetryAfter <= 0 {
		t.Errorf("the address: %v", err)
	}
	if err := h.portal.Ask(t.Context(), "bob@kestrel.example", "192.0.2.77"); code(err) != "too_many_attempts" {
		t.Errorf("the network: %v", err)
	}
	must(t, h.portal.Ask(t.Context(), "bob@kestrel.example", "203.0.113.1"))
}

func TestASessionEndsIdleAtItsEndBySignOutAndWhenItsCustomerOrTenantDoes(t *testing.T) {
	h := newHouse(t)
	acme := h.tenant("Acme")
	kestrel := h.customer(acme, "Kestrel", "")
	stands := func(what, session string, want bool) {
		t.Helper()
		if _, err := h.portal.Visitor(t.Context(), session, true); (err == nil) != want || err != nil && code(err) != "session_ended" {
			t.Errorf("%s: %v", what, err)
		}
	}
	out := h.signIn(acme, kestrel)
	must(t, h.portal.SignOut(t.Context(), out))
	stands("signed out", out, false)

	idle := h.signIn(acme, kestrel)
	h.clock.advance(portal.SessionIdle)
	stands("idle", idle, false)

	used := h.signIn(acme, kestrel)
	for d := time.Duration(0); d < portal.SessionAbsolute-time.Hour; d += 10 * time.Hour {
		stands("in use", used, true)
		h.clock.advance(10 * time.Hour)
	}
	stands("after seven days", used, false)

	suspended := h.signIn(acme, kestrel)
	_, err := h.tenants.SuspendCustomer(t.Context(), acme, kestrel)
	must(t, err)
	if v, err := h.portal.Visitor(t.Context(), suspended, true); err != nil || !v.Suspended {
		t.Errorf("suspended: %+v, %v", v, err)
	}
	waiting := h.link(acme, kestrel)
	n, err := h.portal.EndSessions(t.Context(), acme, kestrel)
	if err != nil || n != 1 {
		t.Errorf("ended %d, %v", n, err)
	}
	stands("ended by the tenant", suspended, false)
	if _, err := h.portal.SignIn(t.Context(), waiting, "", ""); code(err) != "token_invalid" {
		t.Errorf("a link from before: %v", err)
	}

	erased, before := h.signIn(acme, kestrel), h.link(acme, kestrel)
	_, err = h.tenants.EraseCustomer(t.Context(), acme, kestrel, portal.Forget)
	must(t, err)
	stands("erased", erased, false)
	if _, err := h.portal.SignIn(t.Context(), before, "", ""); code(err) != "token_invalid" {
		t.Errorf("a link of an erased customer: %v", err)
	}

	heron := h.customer(acme, "Heron", "h@heron.example")
	last, link := h.signIn(acme, heron), h.link(acme, heron)
	h.super(`update tenants set suspended_at = now()`)
	stands("tenant suspended", last, false)
	if _, err := h.portal.SignIn(t.Context(), link, "", ""); code(err) != "token_invalid" {
		t.Errorf("a link of a suspended tenant: %v", err)
	}
	h.super(`update tenants set suspended_at = null`)
	stands("tenant resumed", last, true)
	h.super(`update customers set removed_at = now() where name = 'Heron'`)
	stands("removed", last, false)
}

func (h house) super(sql string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.db.SuperURL)
	must(h.t, err)
	defer conn.Close(h.t.Context())
	_, err = conn.Exec(h.t.Context(), sql)
	must(h.t, err)
}

func TestALinkThatIsOwedIsGoneWithItsTransaction(t *testing.T) {
	h := newHouse(t)
	acme := h.tenant("Acme")
	kestrel := h.customer(acme, "Kestrel", "")
	stop := fault.New(fault.Conflict, "stop", "")
	err := h.db.App.WithTenant(t.Context(), acme, func(tx pgx.Tx) error {
		must(t, h.portal.OweLink(t.Context(), tx, acme, kestrel, "ann@kestrel.example", portal.Accepted))
		return stop
	})
	if code(err) != "stop" {
		t.Fatal(err)
	}
	if all := h.everything(); strings.Contains(all, "ann@kestrel.example") {
		t.Fatalf("something stayed: %s", all)
	}
}

func TestACustomerWithoutAnAddressIsSentNoLinkAndAnotherTenantsIsNotThere(t *testing.T) {
	h := newHouse(t)
	acme, other := h.tenant("Acme"), h.tenant("Other")
	kestrel := h.customer(acme, "Kestrel", "")
	if _, err := h.portal.SendLink(t.Context(), acme, kestrel); code(err) != "customer_without_email" {
		t.Errorf("got %v", err)
	}
	_, err := h.portal.SendLink(t.Context(), other, kestrel)
	_, err1 := h.portal.MakeLink(t.Context(), other, kestrel)
	_, err2 := h.portal.EndSessions(t.Context(), other, kestrel)
	if code(err) != "not_found" || code(err1) != "not_found" || code(err2) != "not_found" {
		t.Errorf("got %v, %v, %v", err, err1, err2)
	}
}
