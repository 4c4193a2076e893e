package tenants_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// atClock is the fixture's service with a clock that stands; every read is as
// good as a new process's, for nothing is kept between them.
func (f fixture) atClock(now *time.Time) *tenants.Service {
	return tenants.New(f.db.App, nil, nil, nil, func() time.Time { return *now })
}

func ask(t *testing.T, s *tenants.Service, f fixture, zone string) tenants.Tenant {
	t.Helper()
	x, err := s.Change(t.Context(), f.tenant, tenants.TenantChange{Zone: &zone})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func read(t *testing.T, s *tenants.Service, f fixture) tenants.Tenant {
	t.Helper()
	x, err := s.Get(t.Context(), f.tenant)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestAZoneCountsWhenTheDayEndsAndIsTheOldOneUntilThen(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := f.atClock(&now)
	asked := ask(t, s, f, "Asia/Tokyo")
	end := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	if from, pending := asked.Zones.Pending(now); !pending || !from.Equal(end) || asked.Zone != "Europe/Berlin" {
		t.Fatalf("%s from %s (%v)", asked.Zone, from, pending)
	}
	now = end.Add(-time.Millisecond)
	if x := read(t, s, f); x.Zone != "Europe/Berlin" {
		t.Fatalf("before the end of the day %s counts", x.Zone)
	}
	now = end
	x := read(t, s, f)
	if _, pending := x.Zones.Pending(now); pending || x.Zone != "Asia/Tokyo" {
		t.Fatalf("after the end of the day %s counts", x.Zone)
	}
}

func TestAChangeOfZoneIsTakenBackOrReplacedUntilItCounts(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := f.atClock(&now)
	before := read(t, s, f)
	ask(t, s, f, "Asia/Tokyo")
	if diff := cmp.Diff(before.Zones.Zone, ask(t, s, f, "Europe/Berlin").Zones.Zone); diff != "" || len(read(t, s, f).Zones.Past) != 0 {
		t.Fatalf("a change taken back leaves %s, %v", diff, read(t, s, f).Zones.Past)
	}
	ask(t, s, f, "Asia/Tokyo")
	now = now.Add(time.Hour)
	x := ask(t, s, f, "America/New_York")
	if len(x.Zones.Past) != 1 || x.Zones.Past[0].Zone != "Europe/Berlin" {
		t.Fatalf("a change replaced leaves %v", x.Zones.Past)
	}
	now = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	if x := read(t, s, f); x.Zone != "America/New_York" {
		t.Fatalf("%s counts", x.Zone)
	}
}

// Processes know of a change a moment later than it was made. One that is made
// as the day ends must not split them.
func TestAZoneAskedForAsTheDayEndsCountsADayLater(t *testing.T) {
	f := newFixture(t)
	end := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	now := end.Add(-time.Second)
	s := f.atClock(&now)
	if from, pending := ask(t, s, f, "Asia/Tokyo").Zones.Pending(now); !pending || !from.Equal(end.Add(24*time.Hour)) {
		t.Fatalf("from %s (%v), want a day after %s", from, pending, end)
	}
}

func TestZonesDoNotChangeWithoutEnd(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	s := f.atClock(&now)
	zones := []string{"Asia/Tokyo", "UTC"}
	for i := range limits.MaxPastZones {
		ask(t, s, f, zones[i%2])
		now = now.AddDate(0, 0, 2)
	}
	zone := "Asia/Tokyo"
	if _, err := s.Change(t.Context(), f.tenant, tenants.TenantChange{Zone: &zone}); !fault.Is(err, fault.Conflict) {
		t.Fatalf("a ninth change: %v", err)
	}
	now = now.Add(limits.ZoneMemory)
	if x := ask(t, s, f, zone); len(x.Zones.Past) != 1 {
		t.Fatalf("after %s %d past zones are kept", limits.ZoneMemory, len(x.Zones.Past))
	}
}

func TestLimitsAreReadWithEveryZoneThatMayStillCount(t *testing.T) {
	f := newFixture(t)
	c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Kestrel"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{
		Kind: tenants.ForCustomer, Customer: c.ID, Name: "daily",
		Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := f.atClock(&now)
	want := ask(t, s, f, "Asia/Tokyo").Zones
	got, err := s.APIKey(t.Context(), f.tenant, k.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Limits[0].Zones()); diff != "" {
		t.Fatal(diff)
	}
}

func TestACorrectedZoneOfAProviderCountsWhenItsDayEnds(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := f.atClock(&now)
	k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{
		Provider: "practice", Name: "P", Zone: "America/Los_Angeles", Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 5}},
	})
	if err != nil || k.Zone != "America/Los_Angeles" || k.Limits[0].Zone != "America/Los_Angeles" {
		t.Fatalf("%+v, %v", k, err)
	}
	ledger, day := k.Limits[0].Ledger(""), func(k tenants.ProviderKey) (start, end time.Time) {
		l := k.Limits[0]
		start, end, _ = limits.Zones{Zone: l.Zone, Past: l.PastZones}.Day(now)
		return start, end
	}
	_, ends := day(k)
	if k, err = s.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Zone: new("Asia/Tokyo")}); err != nil || k.Zone != "Asia/Tokyo" {
		t.Fatalf("%+v, %v", k, err)
	}
	if _, end := day(k); !end.Equal(ends) || k.Limits[0].Ledger("") != ledger {
		t.Errorf("the running day ends at %s, not at %s", end, ends)
	}
	if k, err = f.ProviderKey(t.Context(), f.tenant, k.ID); err != nil {
		t.Fatal(err)
	}
	now = ends
	if start, end := day(k); !start.Equal(ends) || !end.Equal(time.Date(2026, 12, 1, 15, 0, 0, 0, time.UTC)) {
		t.Errorf("the next day is from %s to %s", start, end)
	}
	if learned := k.LimitsFor("m"); len(learned[0].PastZones) != 1 {
		t.Errorf("what counts for a model forgets where the days ended: %+v", learned)
	}
	if _, err := s.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Zone: new("Mars/Olympus")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a zone that is none: %v", err)
	}
}
