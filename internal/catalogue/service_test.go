package catalogue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

var (
	kinds = []catalogue.Kind{catalogue.KindModels, catalogue.KindLimits, catalogue.KindPrices}
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	one   = limits.Tokens{Input: 1_000_000}
)

const prices = "provider,model,class,above,micros_per_million,currency,valid_from,source\n"

type fixture struct {
	*catalogue.Service
	t    *testing.T
	db   postgrestest.Database
	a, b uuid.UUID
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s := tenants.New(db.App, ring, nil, nil, time.Now)
	f := fixture{Service: catalogue.New(db.App, tenants.Audit), t: t, db: db}
	for i, at := range []*uuid.UUID{&f.a, &f.b} {
		made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: []string{"a", "b"}[i] + "@acme.example"})
		if err != nil {
			t.Fatal(err)
		}
		*at = made.Tenant.ID
	}
	return f
}

func (f fixture) put(tenant uuid.UUID, k catalogue.Kind, i catalogue.Import) catalogue.Diff {
	f.t.Helper()
	d, err := f.Import(f.t.Context(), tenant, k, i)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (f fixture) file(tenant uuid.UUID, k catalogue.Kind, own bool) (string, int) {
	f.t.Helper()
	file, rows, err := f.Export(f.t.Context(), tenant, k, own)
	if err != nil {
		f.t.Fatal(err)
	}
	return file, rows
}

// micros is what a million tokens of input cost now.
func (f fixture) micros(tenant uuid.UUID, model string) string {
	f.t.Helper()
	c, err := f.CostOf(f.t.Context(), tenant)
	if err != nil {
		f.t.Fatal(err)
	}
	cost, currency, priced := c.Of("openai", model, noon, one, 1)
	if !priced {
		return "unpriced"
	}
	return cost.Decimal() + " " + currency
}

func TestImportingAnExportChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: prices + "openai,gpt-4o,input,0,2000000,EUR,2026-11-01,our contract\nopenai,'=x,input,0,1,EUR,2026-11-01,'@home\n"})
	for _, k := range kinds {
		for _, own := range []bool{false, true} {
			for _, replace := range []bool{false, true} {
				file, rows := f.file(f.a, k, own)
				d := f.put(f.a, k, catalogue.Import{CSV: file, Replace: replace})
				if d.Added+d.Changed+d.Removed != 0 || d.Unchanged != rows || len(d.Rows) != 0 {
					t.Errorf("%s, own %v, replace %v: %+v of %d rows", k, own, replace, d, rows)
				}
			}
		}
	}
	if _, rows := f.file(f.a, catalogue.KindPrices, true); rows != 2 {
		t.Errorf("%d rows are the tenant's own", rows)
	}
}

func TestATenantsRowsCountForItAloneAndBeforeWhatIsBuiltIn(t *testing.T) {
	f := newFixture(t)
	if got := f.micros(f.a, "gpt-4o"); got != "2.50 USD" {
		t.Fatalf("built in: %s", got)
	}
	d := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: prices + "openai,gpt-4*,input,0,2000000,EUR,2026-11-01,our contract\n"})
	if d.Added != 1 || d.Rows[0].Line != 2 || d.Rows[0].Before != nil || d.Rows[0].After[4] != "2000000" {
		t.Errorf("%+v", d)
	}
	if a, b := f.micros(f.a, "gpt-4o"), f.micros(f.b, "gpt-4o"); a != "2.00 EUR" || b != "2.50 USD" {
		t.Errorf("%s and %s", a, b)
	}
	if d := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: prices + "openai,gpt-4*,input,0,1900000,EUR,2026-11-01,our contract\n"}); d.Changed != 1 || d.Rows[0].Before[4] != "2000000" {
		t.Errorf("%+v", d)
	}
	if got := f.micros(f.a, "gpt-4o"); got != "1.90 EUR" {
		t.Error(got)
	}
}

func TestARowThatIsBuiltInIsChangedFromItsDayAndComesBack(t *testing.T) {
	f := newFixture(t)
	changed := prices + "openai,gpt-4o,input,0,9000000,USD,2025-08-07,our contract\n"
	if d := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: changed}); d.Changed != 1 || d.Added != 0 {
		t.Errorf("%+v", d)
	}
	if got := f.micros(f.a, "gpt-4o"); got != "9.00 USD" {
		t.Error(got)
	}
	if d := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: prices, Replace: true}); d.Removed != 1 || d.Rows[0].After != nil || d.Rows[0].Line != 0 {
		t.Errorf("%+v", d)
	}
	if got := f.micros(f.a, "gpt-4o"); got != "2.50 USD" {
		t.Error(got)
	}
}

func TestADryRunSaysTheDiffAndStoresNothing(t *testing.T) {
	f := newFixture(t)
	file := prices + "openai,gpt-4o,input,0,1,USD,2025-08-07,x\nopenai,new,input,0,1,USD,2026-11-01,x\n"
	dry := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: file, DryRun: true})
	if dry.Added != 1 || dry.Changed != 1 {
		t.Errorf("%+v", dry)
	}
	if _, rows := f.file(f.a, catalogue.KindPrices, true); rows != 0 || f.micros(f.a, "gpt-4o") != "2.50 USD" {
		t.Error("something was stored")
	}
	if d := f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: file}); d.Added != dry.Added || d.Changed != dry.Changed {
		t.Errorf("%+v, and the dry run said %+v", d, dry)
	}
}

func TestOneWrongLineKeepsAllOthersOut(t *testing.T) {
	f := newFixture(t)
	_, err := f.Import(t.Context(), f.a, catalogue.KindPrices, catalogue.Import{CSV: prices + "openai,good,input,0,1,USD,2026-11-01,x\nopenai,bad,input,0,one,USD,2026-11-01,x\nopenai,worse,inptu,0,1,USD,then,x\n"})
	fields := fault.Of(err).Fields
	if !fault.Is(err, fault.Invalid) || len(fields) != 3 || !strings.HasPrefix(fields[0].Message, "Line 3, micros_per_million: ") || !strings.HasPrefix(fields[2].Message, "Line 4, valid_from: ") {
		t.Errorf("%v %+v", err, fields)
	}
	if got := f.micros(f.a, "good"); got != "unpriced" {
		t.Error(got)
	}
	if _, err := f.Import(t.Context(), f.a, "secrets", catalogue.Import{CSV: prices}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a sheet that is not there: %v", err)
	}
}

func TestAnImportIsInTheAuditOnceAndADryRunIsNot(t *testing.T) {
	f := newFixture(t)
	file := catalogue.Import{CSV: prices + "openai,new,input,0,1,USD,2026-11-01,x\n"}
	f.put(f.a, catalogue.KindPrices, catalogue.Import{CSV: file.CSV, DryRun: true})
	f.put(f.a, catalogue.KindPrices, file)
	f.put(f.a, catalogue.KindPrices, file)
	var n int
	err := f.db.App.WithTenant(t.Context(), f.a, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from audit_entries where tenant_id = $1 and action = 'catalogue.imported'`, f.a).Scan(&n)
	})
	if err != nil || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
}

func TestATenantWithoutRowsReadsWhatIsBuiltIn(t *testing.T) {
	f := newFixture(t)
	b, err := f.Book(t.Context(), id.New())
	if err != nil || b != catalogue.BuiltIn() {
		t.Errorf("%v", err)
	}
}
