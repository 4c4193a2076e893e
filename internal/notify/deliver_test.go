package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/message"
	"weir/internal/outbound"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

// rig is a tenant with the clock in the test's hand: an hour ahead, so that what
// is told now is due.
type rig struct {
	*Service
	t      *testing.T
	pg     postgrestest.Database
	tenant uuid.UUID
	outbox Outbox

	evaluator *Evaluator // of evaluate

	mu sync.Mutex
	at time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, pg: postgrestest.New(t), at: time.Now().Add(time.Hour)}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	t.Cleanup(guard.Close)
	service := tenants.New(r.pg.App, ring, guard, catalogue.NewClient(guard), r.clock)
	made, err := service.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	r.tenant = made.Tenant.ID
	r.Service = New(r.pg.App, service, guard, r.clock)
	return r
}

func (r *rig) clock() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.at }

func (r *rig) pass(d time.Duration) { r.mu.Lock(); defer r.mu.Unlock(); r.at = r.at.Add(d) }

// worker is a Deliverer whose jitter is none.
func (r *rig) worker() *Deliverer {
	d := NewDeliverer(r.Service, &r.outbox, slog.New(slog.DiscardHandler))
	d.random = func() float64 { return 0 }
	return d
}

func (r *rig) emit(n int) {
	r.t.Helper()
	err := r.db.WithTenant(r.t.Context(), r.tenant, func(tx pgx.Tx) error {
		return message.Emit(r.t.Context(), tx, r.tenant, message.CustomerCreated, map[string]int{"n": n})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.pass(time.Millisecond)
}

func (r *rig) deliver(d *Deliverer) {
	r.t.Helper()
	if err := d.Deliver(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) endpoint(far *far, types ...string) Issued {
	r.t.Helper()
	e, err := r.AddEndpoint(r.t.Context(), r.tenant, NewEndpoint{URL: far.URL + "/in?code=a%2Fb", Types: types})
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// all is every message, newest first, with every try.
func (r *rig) all() (out []Message) {
	r.t.Helper()
	page, err := r.Messages(r.t.Context(), r.tenant, MessageFilter{}, uuid.Nil, 100)
	for _, m := range page.Items {
		if m, err = r.Message(r.t.Context(), r.tenant, m.ID); err == nil {
			out = append(out, m)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// got is one request that a far end received.
type got struct {
	header http.Header
	body   string
}

// far is an endpoint of somebody else.
type far struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []got
}

func newFar(t *testing.T, status int) *far {
	f := &far{status: status}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.got = append(f.got, got{r.Header, string(b)})
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, "canary of the answer")
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *far) answer(status int) { f.mu.Lock(); defer f.mu.Unlock(); f.status = status }

func (f *far) received() []got { f.mu.Lock(); defer f.mu.Unlock(); return append([]got(nil), f.got...) }

// verified is whether the standard's own library takes the request for ours.
func verified(secret string, g got) error {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return wh.VerifyIgnoringTimestamp([]byte(g.body), g.header)
}

func TestEveryEndpointGetsEachMessageSignedWhenTwoWorkersShareTheWork(t *testing.T) {
	r := newRig(t)
	fars := []*far{newFar(t, 204), newFar(t, 200), newFar(t, 200)}
	a, b := r.endpoint(fars[0]), r.endpoint(fars[1], "customer.*")
	r.endpoint(fars[2], string(message.PlanPublished))
	const n = 20
	for i := range n {
		r.emit(i)
	}
	workers := []*Deliverer{r.worker(), r.worker()}
	for range n { // each round takes a few of one endpoint
		var wait sync.WaitGroup
		for _, d := range workers {
			wait.Go(func() { r.deliver(d) })
		}
		wait.Wait()
	}
	for i, e := range []Issued{a, b} {
		seen := map[string]bool{}
		for _, g := range fars[i].received() {
			if err := verified(e.Secret, g); err != nil {
				t.Errorf("the standard's library refuses it: %v", err)
			}
			var body struct {
				Type, Timestamp string
				Data            struct{ N int }
			}
			if err := json.Unmarshal([]byte(g.body), &body); err != nil || body.Type != "customer.created" || body.Timestamp == "" {
				t.Errorf("body %s: %v", g.body, err)
			}
			if id := g.header.Get("webhook-id"); seen[id] || !strings.HasPrefix(id, "msg_") {
				t.Errorf("%s came twice, with two workers that live", id)
			} else {
				seen[id] = true
			}
		}
		if len(seen) != n {
			t.Errorf("endpoint %d got %d of %d messages", i, len(seen), n)
		}
	}
	if len(fars[2].received()) != 0 {
		t.Error("an endpoint got what it does not want")
	}
	if err := verified(a.Secret, fars[1].received()[0]); err == nil {
		t.Error("one endpoint's secret verifies what another got")
	}
}

func TestAWorkerKilledBeforeItWroteDownSendsAgainWithTheSameIdAndBytes(t *testing.T) {
	r := newRig(t)
	f := newFar(t, 200)
	e := r.endpoint(f)
	r.emit(1)
	killed := r.worker()
	killed.beforeRecord = func() bool { return false }
	r.deliver(killed)
	r.deliver(r.worker())
	if n := len(f.received()); n != 1 {
		t.Fatalf("%d tries while the lease runs", n)
	}
	r.pass(leaseFor)
	r.deliver(r.worker())
	all := f.received()
	if len(all) != 2 || all[0].header.Get("webhook-id") != all[1].header.Get("webhook-id") || all[0].body != all[1].body {
		t.Fatalf("got %+v", all)
	}
	if all[0].header.Get("webhook-timestamp") == all[1].header.Get("webhook-timestamp") {
		t.Error("the second try has the first one's time")
	}
	if err := errors.Join(verified(e.Secret, all[0]), verified(e.Secret, all[1])); err != nil {
		t.Error(err)
	}
	if d := r.all()[0].Deliveries[0]; d.State != Taken || d.Tries != 1 || len(d.Attempts) != 1 {
		t.Errorf("recorded %+v", d)
	}
}

func TestWhatIsRolledBackIsNeverTold(t *testing.T) {
	r := newRig(t)
	f := newFar(t, 200)
	r.endpoint(f)
	undone := errors.New("undone")
	err := r.db.WithTenant(t.Context(), r.tenant, func(tx pgx.Tx) error {
		if err := message.Emit(t.Context(), tx, r.tenant, message.CustomerCreated, 1); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	r.deliver(r.worker())
	if len(f.received()) != 0 {
		t.Error("it was told")
	}
}

func TestAnEndpointThatIsDownForThreeDaysIsTriedOnScheduleGivenUpAndHoldsUpNobody(t *testing.T) {
	r := newRig(t)
	down, well := newFar(t, 500), newFar(t, 200)
	bad := r.endpoint(down)
	r.endpoint(well)
	r.emit(1)
	d := r.worker()
	began := r.clock()
	for try := range Tries {
		r.deliver(d)
		if n := len(down.received()); n != try+1 {
			t.Fatalf("after try %d: %d requests", try+1, n)
		}
		if try == Tries-1 {
			break
		}
		r.pass(gaps[try] - time.Second)
		r.deliver(d)
		if n := len(down.received()); n != try+1 {
			t.Fatalf("a try came before its time, after %v", r.clock().Sub(began))
		}
		r.pass(time.Second)
	}
	if took := r.clock().Sub(began); took < 60*time.Hour || took > 72*time.Hour {
		t.Errorf("given up after %v", took)
	}
	x := r.all()[0]
	for _, dl := range x.Deliveries {
		want := Delivery{State: Taken, Tries: 1, Status: 200}
		if dl.Endpoint == bad.ID {
			want = Delivery{State: Dead, Tries: Tries, Status: 500}
		}
		if dl.State != want.State || dl.Tries != want.Tries || dl.Status != want.Status || len(dl.Attempts) != want.Tries {
			t.Errorf("%+v", dl)
		}
	}
	r.pass(30 * 24 * time.Hour)
	r.deliver(d)
	if len(down.received()) != Tries || len(well.received()) != 1 {
		t.Error("something was sent after the end")
	}
	ids := map[string]bool{}
	for _, g := range down.received() {
		ids[g.header.Get("webhook-id")+g.body] = true
	}
	if len(ids) != 1 {
		t.Error("tries differ in id or bytes")
	}
}

func TestAQueueAtAnEndpointThatHangsHoldsUpNoOther(t *testing.T) {
	r := newRig(t)
	release := make(chan struct{})
	hangs := &far{Server: httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))}
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { close(release) })
	well := newFar(t, 200)
	r.endpoint(hangs)
	const n = 3 * eachAtOnce
	for i := range n {
		r.emit(i)
	}
	r.endpoint(well)
	r.emit(n)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = r.worker().Run(ctx) }()
	for end := time.Now().Add(10 * time.Second); len(well.received()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the other endpoint waits")
		}
	}
}

func TestARedirectIsNoAnswerAndAPrivateAddressIsNotCalled(t *testing.T) {
	r := newRig(t)
	inner := newFar(t, 200)
	redirects := &far{Server: httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))}
	t.Cleanup(redirects.Close)
	r.endpoint(redirects)
	r.emit(1)
	r.deliver(r.worker())
	if d := r.all()[0].Deliveries[0]; d.State != Waiting || d.Status != 307 || len(inner.received()) != 0 {
		t.Errorf("%+v, %d followed", d, len(inner.received()))
	}
	strict := outbound.New(outbound.Policy{})
	t.Cleanup(strict.Close)
	r.guard = strict
	for _, u := range []string{"http://127.0.0.1/x", "https://10.0.0.1/x", "https://169.254.169.254/latest", "http://example.com/", "https://a:b@example.com/", "https://example.com/#x", "https://[::1]/"} {
		if _, err := r.AddEndpoint(t.Context(), r.tenant, NewEndpoint{URL: u}); fault.Of(err) == nil || fault.Of(err).Code != "url_not_allowed" {
			t.Errorf("%s: %v", u, err)
		}
	}
	// What was allowed when it was stored is looked at again when it is dialled.
	r.pass(time.Minute)
	r.deliver(r.worker())
	if d := r.all()[0].Deliveries[0]; d.State != Waiting || d.Status != 0 || d.Error != failedBlocked {
		t.Errorf("%+v", d)
	}
}

func TestARotatedSecretSignsBesideTheNewOneUntilItsOverlapEnds(t *testing.T) {
	r := newRig(t)
	f := newFar(t, 200)
	old := r.endpoint(f)
	fresh, err := r.RotateSecret(t.Context(), r.tenant, old.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.emit(1)
	r.deliver(r.worker())
	r.pass(time.Hour)
	r.emit(2)
	r.deliver(r.worker())
	all := f.received()
	if len(all) != 2 {
		t.Fatalf("%d requests", len(all))
	}
	if err := errors.Join(verified(old.Secret, all[0]), verified(fresh.Secret, all[0]), verified(fresh.Secret, all[1])); err != nil {
		t.Error(err)
	}
	if verified(old.Secret, all[1]) == nil {
		t.Error("the old secret signs after its end")
	}
	if now, err := r.RotateSecret(t.Context(), r.tenant, old.ID, 0); err != nil || !strings.HasSuffix(now.Secret, now.Last4) {
		t.Fatal(err)
	}
	r.emit(3)
	r.deliver(r.worker())
	if verified(fresh.Secret, f.received()[2]) == nil {
		t.Error("a secret that was replaced at once still signs")
	}
}

func TestAnEndpointThatFailsForDaysOrIsGoneIsSwitchedOffHeldAndToldByMail(t *testing.T) {
	r := newRig(t)
	fails, gone := newFar(t, 503), newFar(t, 410)
	a, b := r.endpoint(fails), r.endpoint(gone)
	r.emit(1)
	d := r.worker()
	r.deliver(d)
	if e, err := r.Endpoint(t.Context(), r.tenant, b.ID); err != nil || e.DisabledWhy != OffGone {
		t.Fatalf("%+v, %v", e, err)
	}
	for range 6 {
		r.pass(24 * time.Hour)
		r.emit(2)
		r.deliver(d)
	}
	e, err := r.Endpoint(t.Context(), r.tenant, a.ID)
	if err != nil || e.DisabledWhy != OffFailing {
		t.Fatalf("%+v, %v", e, err)
	}
	r.deliver(d)
	mails := r.outbox.Messages()
	if len(mails) != 2 || mails[0].To != "ann@acme.example" || !strings.Contains(mails[0].Text+mails[1].Text, fails.URL) {
		t.Fatalf("mails: %+v", mails)
	}
	before := len(fails.received())
	r.emit(3)
	r.deliver(d)
	if len(fails.received()) != before {
		t.Error("something was sent to an endpoint that is off")
	}
	off := false
	if _, err := r.ChangeEndpoint(t.Context(), r.tenant, a.ID, EndpointChange{Disabled: &off}); err != nil {
		t.Fatal(err)
	}
	fails.answer(200)
	n, err := r.Replay(t.Context(), r.tenant, a.ID, Range{From: r.clock().Add(-60 * 24 * time.Hour)})
	if err != nil || n != 8 {
		t.Fatalf("%d replayed, %v", n, err)
	}
	for range 8 {
		r.deliver(d)
	}
	for _, m := range r.all() {
		for _, dl := range m.Deliveries {
			if dl.Endpoint == a.ID && dl.State != Taken {
				t.Errorf("after the replay: %+v", dl)
			}
		}
	}
}

// TestAnEndpointThatMovedIsNotSwitchedOffForItsOldAddress: days in which that took
// nothing are none of the new one.
func TestAnEndpointThatMovedIsNotSwitchedOffForItsOldAddress(t *testing.T) {
	r := newRig(t)
	old, next := newFar(t, 503), newFar(t, 503)
	e := r.endpoint(old)
	r.emit(1)
	d := r.worker()
	r.deliver(d)
	r.pass(6 * 24 * time.Hour)
	if _, err := r.ChangeEndpoint(t.Context(), r.tenant, e.ID, EndpointChange{URL: &next.URL}); err != nil {
		t.Fatal(err)
	}
	r.emit(1)
	r.deliver(d)
	got, err := r.Endpoint(t.Context(), r.tenant, e.ID)
	if err != nil || got.DisabledAt != nil || got.FailingSince == nil || len(next.received()) == 0 {
		t.Errorf("after its first failure there: %+v, %v", got, err)
	}
}

func TestAResentMessageHasItsIdAndNothingOfAnAnswerIsKept(t *testing.T) {
	r := newRig(t)
	f := newFar(t, 200)
	e := r.endpoint(f)
	m, err := r.Test(t.Context(), r.tenant, e.ID)
	if err != nil || m.Type != message.WebhookTest {
		t.Fatalf("%+v, %v", m, err)
	}
	r.deliver(r.worker())
	if _, err := r.Resend(t.Context(), r.tenant, m.ID, uuid.Nil); err != nil {
		t.Fatal(err)
	}
	r.deliver(r.worker())
	all := f.received()
	if len(all) != 2 || all[0].header.Get("webhook-id") != id.Message.Format(m.ID) || all[1].header.Get("webhook-id") != id.Message.Format(m.ID) {
		t.Fatalf("%+v", all)
	}
	m, err = r.Message(t.Context(), r.tenant, m.ID)
	if err != nil || len(m.Deliveries[0].Attempts) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	kept, _ := json.Marshal(m)
	if strings.Contains(string(kept), "canary") {
		t.Error("an answer's body was kept")
	}
}

func TestAnotherTenantSeesAndSendsNothing(t *testing.T) {
	r := newRig(t)
	f := newFar(t, 200)
	e := r.endpoint(f)
	r.emit(1)
	other, err := r.tenants.Create(t.Context(), tenants.NewTenant{Name: "Other", OwnerEmail: "bob@other.example", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	them, m := other.Tenant.ID, r.all()[0].ID
	for name, err := range map[string]error{
		"read":   second(r.Endpoint(t.Context(), them, e.ID)),
		"change": second(r.ChangeEndpoint(t.Context(), them, e.ID, EndpointChange{})),
		"remove": r.RemoveEndpoint(t.Context(), them, e.ID),
		"rotate": second(r.RotateSecret(t.Context(), them, e.ID, 0)),
		"test":   second(r.Test(t.Context(), them, e.ID)),
		"replay": second(r.Replay(t.Context(), them, e.ID, Range{})),
		"told":   second(r.Message(t.Context(), them, m)),
		"resend": second(r.Resend(t.Context(), them, m, e.ID)),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := r.Messages(t.Context(), them, MessageFilter{}, uuid.Nil, 10); err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestOldMessagesArePruned(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200))
	r.emit(1)
	r.deliver(r.worker())
	r.pass(keptFor - time.Hour)
	if err := r.Prune(t.Context()); err != nil || len(r.all()) != 1 {
		t.Fatalf("%v", err)
	}
	r.pass(2 * time.Hour)
	if err := r.Prune(t.Context()); err != nil || len(r.all()) != 0 {
		t.Fatalf("%v", err)
	}
}

func TestJitterTakesAtMostAFifthOffAWait(t *testing.T) {
	for failed := 1; failed < Tries; failed++ {
		long, ok := nextTry(failed, 0)
		short, ok2 := nextTry(failed, 0.999999)
		if !ok || !ok2 || long != gaps[failed-1] || short >= long || short < long*4/5 {
			t.Errorf("after %d: %v to %v", failed, short, long)
		}
	}
	if _, more := nextTry(Tries, 0); more {
		t.Error("there is no end")
	}
}
