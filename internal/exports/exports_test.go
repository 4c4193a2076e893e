package exports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/outbound"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
	"weir/internal/usage"
)

var everything = Sight{true, true, true, true, true, true}

// desk is a tenant with books, and a clock.
type desk struct {
	t       *testing.T
	db      postgrestest.Database
	service *Service
	tenants *tenants.Service
	reports *usage.Reports
	tenant  uuid.UUID

	mu sync.Mutex
	at time.Time
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *desk) advance(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(by)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, db: postgrestest.New(t), at: time.Now().UTC().Truncate(time.Second)}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{})
	d.tenants = tenants.New(d.db.App, ring, guard, catalogue.NewClient(guard), d.now)
	made, err := d.tenants.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin", Currency: "EUR"})
	must(t, err)
	d.tenant, d.reports = made.Tenant.ID, usage.NewReports(d.db.App, d.now)
	d.service = New(d.db.App, d.tenants, d.reports, d.now)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) event(at time.Time) usage.Event {
	cost := money.FromInt(30)
	return usage.Event{
		Version: 1, ID: id.At(at), RequestID: id.At(at), Tenant: d.tenant, ModelAsked: "gpt-4o", ModelServed: "gpt-4o", Kind: "chat",
		StartedAt: at, EndedAt: at.Add(time.Second), LocalDay: limits.DayStart(at, time.UTC), Outcome: usage.OK, Requests: 1,
		Tokens: limits.Tokens{Input: 7, Output: 3}, Charge: money.FromInt(50_000), Currency: "EUR", Cost: &cost, CostCurrency: "USD",
	}
}

func (d *desk) store(events ...usage.Event) {
	d.t.Helper()
	w := usage.NewWorker(d.db.Worker, nil, usage.SigningKeys{}, usage.WorkerOptions{Log: slog.New(slog.DiscardHandler)})
	must(d.t, w.Backfill(d.t.Context(), id.New(), events))
}

// many are n calls of which most share an instant with others.
func (d *desk) many(n int) {
	d.t.Helper()
	var events []usage.Event
	for i := range n {
		e := d.event(d.now().Add(-time.Duration(i/1200) * time.Hour).Add(-time.Minute))
		e.ModelAsked, e.Tokens.Input = []string{"gpt-4o", "o4-mini", "claude"}[i%3], int64(i)
		events = append(events, e)
	}
	d.store(events...)
}

func (d *desk) asked(k Kind, f Format) Asked {
	return Asked{Kind: k, Format: f, From: d.now().Add(-24 * time.Hour), To: d.now(), Zone: "Europe/Berlin", Bucket: usage.Hour, GroupBy: usage.ByModel, Filter: usage.Filter{Tests: usage.WithTests}, Sight: everything}
}

func (d *desk) ask(a Asked) Export {
	d.t.Helper()
	e, err := d.service.Create(d.t.Context(), d.tenant, a)
	must(d.t, err)
	return e
}

func (d *desk) maker() *Maker { return NewMaker(d.service, slog.New(slog.DiscardHandler)) }

func (d *desk) make() {
	d.t.Helper()
	must(d.t, d.maker().Make(d.t.Context()))
}

// read is the file of an export that is ready, whose checksums are right.
func (d *desk) read(e Export) (Export, string) {
	d.t.Helper()
	e, err := d.service.Open(d.t.Context(), d.tenant, e.ID, everything)
	must(d.t, err)
	var b bytes.Buffer
	must(d.t, d.service.Copy(d.t.Context(), d.tenant, e.ID, &b))
	sum := sha256.Sum256(b.Bytes())
	if !bytes.Equal(sum[:], e.SHA256) || int64(b.Len()) != e.Bytes {
		d.t.Fatalf("%d bytes that are not the %d that were made", b.Len(), e.Bytes)
	}
	body := strings.TrimRight(b.String(), "\r\n")
	last := strings.LastIndexByte(body, '\n') + 1
	before := sha256.Sum256(b.Bytes()[:last])
	if !strings.Contains(body[last:], hex.EncodeToString(before[:])) || !strings.Contains(body[last:], "Europe/Berlin") || !strings.Contains(body[last:], strconv.FormatInt(e.Rows, 10)) {
		d.t.Fatalf("the last row says %s", body[last:])
	}
	return e, b.String()
}

func rowsOf(t *testing.T, body string) (head []string, rows [][]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	must(t, err)
	return all[0], all[1 : len(all)-1]
}

func TestALogOfManyPagesHasEveryCallOnceInBothFormats(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(3500)
	table, lines := d.ask(d.asked(Requests, CSV)), d.ask(d.asked(Requests, JSON))
	d.make()
	_, body := d.read(table)
	head, rows := rowsOf(t, body)
	if len(rows) != 3500 || head[0] != "started_at" || !strings.Contains(rows[0][0], "+01:00") && !strings.Contains(rows[0][0], "+02:00") {
		t.Fatalf("%d rows, %v, %v", len(rows), head, rows[0])
	}
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r[3]] = true
	}
	if len(seen) != 3500 {
		t.Errorf("%d calls in 3,500 rows", len(seen))
	}
	e, body := d.read(lines)
	n := 0
	for line := range strings.Lines(body) {
		var row struct {
			Event    string `json:"event"`
			Billed   string `json:"billed"`
			Checksum *struct{ Rows int64 }
		}
		must(t, json.Unmarshal([]byte(line), &row))
		if row.Checksum == nil {
			n++
			if !seen[row.Event] || row.Billed != "0.00000005" {
				t.Fatalf("unknown or wrong: %s", line)
			}
		}
	}
	if n != 3500 || e.Rows != 3500 {
		t.Errorf("%d lines, %d rows", n, e.Rows)
	}
}

func TestAUsageExportAddsUpToTheReport(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(900)
	a := d.asked(Usage, CSV)
	e := d.ask(a)
	d.make()
	_, body := d.read(e)
	zone, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	rep, err := d.reports.Report(t.Context(), d.tenant, usage.Query{From: a.From, To: a.To, Bucket: a.Bucket, GroupBy: a.GroupBy, Filter: a.Filter, Zone: zone})
	must(t, err)
	head, rows := rowsOf(t, body)
	total := rows[len(rows)-1]
	var requests, tokens int64
	for _, r := range rows[:len(rows)-1] {
		requests, tokens = requests+whole(t, r[4]), tokens+whole(t, r[12])
	}
	if requests != 900 || requests != rep.Totals.Requests || tokens != rep.Totals.Tokens.Total() || whole(t, total[4]) != requests || whole(t, total[12]) != tokens {
		t.Errorf("rows %d and %d, the last %v, the report %+v", requests, tokens, total, rep.Totals)
	}
	if words := strings.Join(head[14:], " "); words != "billed_EUR provider_cost_EUR billed_USD provider_cost_USD requests_without_price" || total[14] != rep.Totals.Charges[0].Amount.Decimal() || total[17] != rep.Totals.Costs[0].Amount.Decimal() {
		t.Errorf("%s: %v", words, total)
	}
}

func whole(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	must(t, err)
	return n
}

func TestWhatAWorkerLeftWhenItWasKilledIsBegunAgainByAnother(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(3500)
	e := d.ask(d.asked(Requests, CSV))
	ctx, kill := context.WithCancel(t.Context())
	dying := d.maker()
	dying.piece, dying.pieced = 1, func(number int) {
		if number == 2 {
			kill()
		}
	}
	if err := dying.Make(ctx); err == nil {
		t.Fatal("the worker that was killed says that all is well")
	}
	d.make()
	got, err := d.service.Get(t.Context(), d.tenant, e.ID)
	must(t, err)
	if got.State != Running || got.Rows != 2000 || got.Progress <= 0 || got.Progress >= 1 {
		t.Fatalf("under its lease it is %s with %d rows, %f", got.State, got.Rows, got.Progress)
	}
	d.advance(leaseFor + time.Second)
	d.make()
	_, body := d.read(e)
	if _, rows := rowsOf(t, body); len(rows) != 3500 {
		t.Fatalf("%d rows", len(rows))
	}
}

func TestAWorkerThatLostItsLeaseWritesNothingMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(2500)
	e := d.ask(d.asked(Requests, CSV))
	slow := d.maker()
	slow.piece, slow.pieced = 1, func(number int) {
		if number == 1 { // it sleeps through its lease, and another one makes the file
			d.advance(leaseFor + time.Second)
			d.make()
		}
	}
	must(t, slow.Make(t.Context()))
	_, body := d.read(e)
	if _, rows := rowsOf(t, body); len(rows) != 2500 {
		t.Fatalf("%d rows", len(rows))
	}
}

func TestManyWorkersMakeEachFileOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(1500)
	var all []Export
	for range 6 {
		all = append(all, d.ask(d.asked(Requests, CSV)))
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if err := d.maker().Make(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, e := range all {
		_, body := d.read(e)
		if _, rows := rowsOf(t, body); len(rows) != 1500 {
			t.Errorf("%d rows", len(rows))
		}
	}
}

func TestAFileThatStopsItsWorkersFailsAfterThreeTimes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(1500)
	e := d.ask(d.asked(Requests, CSV))
	for range mostBegun {
		ctx, kill := context.WithCancel(t.Context())
		dying := d.maker()
		dying.piece, dying.pieced = 1, func(int) { kill() }
		if err := dying.Make(ctx); err == nil {
			t.Fatal("it was made")
		}
		d.advance(leaseFor + time.Second)
	}
	d.make()
	got, err := d.service.Get(t.Context(), d.tenant, e.ID)
	must(t, err)
	if got.State != Failed || !strings.Contains(got.Reason, "three times") {
		t.Fatalf("it is %s: %s", got.State, got.Reason)
	}
	if _, err := d.service.Open(t.Context(), d.tenant, e.ID, everything); !fault.Is(err, fault.Conflict) {
		t.Errorf("its file: %v", err)
	}
}

func TestAReportThatCannotBeMadeFailsWithTheReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var events []usage.Event
	for i := range 60 {
		e := d.event(d.now().Add(-time.Minute))
		e.ModelAsked = fmt.Sprint("model-", i)
		events = append(events, e)
	}
	d.store(events...)
	a := d.asked(Usage, JSON)
	a.Bucket = usage.Minute
	e := d.ask(a)
	d.make()
	got, err := d.service.Get(t.Context(), d.tenant, e.ID)
	must(t, err)
	if got.State != Failed || !strings.Contains(got.Reason, "too many groups") {
		t.Fatalf("it is %s: %s", got.State, got.Reason)
	}
}

func TestAFileHoldsAndShowsNoMoreThanItsReaderMaySee(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	customer, err := d.tenants.AddCustomer(t.Context(), d.tenant, tenants.NewCustomer{Name: "=cmd|' /C calc'!A1"})
	must(t, err)
	call := d.event(d.now().Add(-time.Minute))
	call.Customer, call.EndUser, call.Charge = customer.ID, "@sum", money.FromInt(4_560_000_000_000)
	d.store(call)
	blind := d.asked(Requests, CSV)
	blind.Sight = Sight{}
	usageOnly := d.asked(Usage, CSV)
	usageOnly.Sight = Sight{}
	less, sums, full := d.ask(blind), d.ask(usageOnly), d.ask(d.asked(Requests, CSV))
	d.make()
	for _, e := range []Export{less, sums} {
		_, body := d.read(e)
		for _, secret := range []string{"4.56", "billed", "cost", "customer", "calc", id.Customer.Format(customer.ID)} {
			if strings.Contains(body, secret) {
				t.Errorf("it says %q: %s", secret, body)
			}
		}
	}
	_, body := d.read(full)
	if !strings.Contains(body, "4.56") || !strings.Contains(body, "'=cmd|") || strings.Contains(body, ",=cmd") || !strings.Contains(body, "'@sum") {
		t.Errorf("the whole file: %s", body)
	}
	for i, narrow := range []Sight{{}, {Charges: true, Costs: true}, {true, false, true, true, true, true}} {
		if _, err := d.service.Open(t.Context(), d.tenant, full.ID, narrow); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := d.service.Open(t.Context(), id.New(), full.ID, everything); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
}

// TestTheAuditIsAFileInTheOrderOfItsChain: for who may see it alone, every entry
// once, without formulas, and as files of other kinds.
func TestTheAuditIsAFileInTheOrderOfItsChain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 1100 { // more than a page
		name := "c" + strconv.Itoa(i)
		if i == 0 {
			name = "=1+1"
		}
		if _, err := d.tenants.AddCustomer(t.Context(), d.tenant, tenants.NewCustomer{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, d.db.App.WithTenant(t.Context(), d.tenant, func(tx pgx.Tx) error {
		return tenants.Audit(t.Context(), tx, d.tenant, "=cmd|calc", "@sum", nil)
	}))
	d.advance(time.Minute)
	what := d.asked(Audit, CSV)
	what.From = d.now().Add(-time.Hour)
	blind := what
	blind.Sight.Audit = false
	if _, err := d.service.Create(t.Context(), d.tenant, blind); !fault.Is(err, fault.Forbidden) {
		t.Errorf("for who does not see it: %v", err)
	}
	e := d.ask(what)
	calls := d.ask(d.asked(Requests, CSV))
	d.make()
	_, body := d.read(e)
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	must(t, err)
	var entries int
	must(t, d.db.App.WithTenant(t.Context(), d.tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from audit_entries where tenant_id = $1 and action not like 'export%'`, d.tenant).Scan(&entries)
	}))
	data := rows[1 : len(rows)-1]
	for i, r := range data {
		if i > 0 && r[14] != data[i-1][13] {
			t.Fatalf("row %d does not follow the one before", i)
		}
		for _, cell := range r {
			if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "@") {
				t.Errorf("a formula: %q", cell)
			}
		}
	}
	if len(data) < entries || rows[len(rows)-1][0] != "checksum" || !strings.Contains(body, "'=cmd|calc") {
		t.Errorf("%d rows of %d entries", len(data), entries)
	}
	narrow := everything
	narrow.Audit = false
	if _, err := d.service.Open(t.Context(), d.tenant, e.ID, narrow); !fault.Is(err, fault.Forbidden) {
		t.Errorf("downloaded by who does not see it: %v", err)
	}
	if _, err := d.service.Open(t.Context(), d.tenant, calls.ID, narrow); err != nil {
		t.Errorf("a file of calls: %v", err)
	}
}

func TestAfterAWeekAFileIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.many(3)
	e := d.ask(d.asked(Requests, CSV))
	d.make()
	d.advance(keptFor - time.Minute)
	d.read(e)
	d.advance(2 * time.Minute)
	if _, err := d.service.Get(t.Context(), d.tenant, e.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("after a week: %v", err)
	}
	must(t, d.maker().Prune(t.Context()))
	must(t, d.db.App.WithTenant(t.Context(), d.tenant, func(tx pgx.Tx) error {
		var n int
		err := tx.QueryRow(t.Context(), `select count(*) from exports full join export_chunks using (tenant_id, export_id)`).Scan(&n)
		if n != 0 {
			t.Errorf("%d rows are left", n)
		}
		return err
	}))
}

func TestATenantHasAtMostTenFilesWaiting(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range mostOpen {
		d.ask(d.asked(Usage, CSV))
	}
	if _, err := d.service.Create(t.Context(), d.tenant, d.asked(Usage, CSV)); fault.Of(err).Code != "too_many_exports" {
		t.Fatalf("the eleventh: %v", err)
	}
	d.make()
	d.ask(d.asked(Usage, CSV))
	wrong := d.asked("shoes", "xls")
	wrong.From = time.Time{}
	_, err := d.service.Create(t.Context(), d.tenant, wrong)
	if f := fault.Of(err); f.Kind != fault.Invalid || len(f.Fields) != 3 {
		t.Errorf("what is wrong: %v", err)
	}
	page, err := d.service.List(t.Context(), d.tenant, uuid.Nil, 4)
	must(t, err)
	rest, err := d.service.List(t.Context(), d.tenant, page.Next, 100)
	must(t, err)
	if len(page.Items) != 4 || len(rest.Items) != 7 || rest.Next != uuid.Nil {
		t.Errorf("%d and %d", len(page.Items), len(rest.Items))
	}
}

// TestOfExportsAskedForAtOnceTenWait, however many there are.
func TestOfExportsAskedForAtOnceTenWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var asked sync.WaitGroup
	var taken atomic.Int64
	start := make(chan struct{})
	for range 40 {
		asked.Go(func() {
			<-start
			_, err := d.service.Create(t.Context(), d.tenant, d.asked(Usage, CSV))
			switch {
			case err == nil:
				taken.Add(1)
			case fault.Of(err).Code != "too_many_exports":
				t.Error(err)
			}
		})
	}
	close(start)
	asked.Wait()
	if n := taken.Load(); n != mostOpen {
		t.Errorf("%d wait", n)
	}
}

// TestAfterAnErasureNoFileNamesThePerson: one that is there, one that is being
// made, and one that waits.
func TestAfterAnErasureNoFileNamesThePerson(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c, err := d.tenants.AddCustomer(t.Context(), d.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	var events []usage.Event
	for range 2500 {
		e := d.event(d.now().Add(-time.Minute))
		e.Customer, e.EndUser = c.ID, "ann@x.example"
		events = append(events, e)
	}
	d.store(events...)
	ready := d.ask(d.asked(Requests, CSV))
	d.make()
	running, waiting := d.ask(d.asked(Requests, CSV)), d.ask(d.asked(Requests, JSON))
	slow := d.maker()
	slow.piece, slow.pieced = 1, func(number int) {
		if number == 1 {
			_, err := d.tenants.EraseCustomer(t.Context(), d.tenant, c.ID, usage.Erase, Forget)
			must(t, err)
		}
	}
	must(t, slow.Make(t.Context()))
	for _, e := range []Export{ready, running, waiting} {
		if _, err := d.service.Open(t.Context(), d.tenant, e.ID, everything); fault.Of(err).Code != "export_not_ready" {
			t.Errorf("a file of before is handed out: %v", err)
		}
		var b bytes.Buffer
		must(t, d.service.Copy(t.Context(), d.tenant, e.ID, &b))
		if b.Len() > 0 {
			t.Errorf("%d bytes of it are kept", b.Len())
		}
	}
	must(t, usage.NewKeeper(d.db.Worker, 0, slog.New(slog.DiscardHandler), d.now).EraseAsked(t.Context()))
	d.advance(2 * time.Minute)
	d.make()
	for _, e := range []Export{running, waiting} {
		got, body := d.read(e)
		if got.Rows != 2500 || strings.Contains(body, "ann@") || strings.Contains(body, "Kestrel") {
			t.Errorf("%d rows, which name somebody", got.Rows)
		}
	}
}
