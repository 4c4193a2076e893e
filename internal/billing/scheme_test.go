package billing

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTiersCostWhatTheContractSays(t *testing.T) {
	for name, c := range map[string]struct {
		price Price
		units int64
		want  string
	}{
		"graduated":                             {Price{Scheme: Graduated, Tiers: []Tier{{1_000_000, 0}, {10_000_000, 1_000_000}, {0, 500_000}}}, 12_500_000, "10.25"},
		"graduated, the first million included": {Price{Scheme: Graduated, Included: 1_000_000, Tiers: []Tier{{10_000_000, 1_000_000}, {0, 500_000}}}, 12_500_000, "10.25"},
		"volume":                                {Price{Scheme: Volume, Tiers: []Tier{{10_000_000, 1_000_000}, {0, 500_000}}}, 12_500_000, "6.25"},
		"volume, at the end of a band":          {Price{Scheme: Volume, Tiers: []Tier{{10_000_000, 1_000_000}, {0, 500_000}}}, 10_000_000, "10.00"},
		"package":                               {Price{Scheme: PerPackage, Included: 1_000_000, Package: 1_000_000, MicrosPerMillion: 1_000_000}, 12_500_000, "12.00"},
		"package, nothing beyond":               {Price{Scheme: PerPackage, Included: 1_000_000, Package: 1_000_000, MicrosPerMillion: 1_000_000}, 1_000_000, "0.00"},
		"per unit":                              {Price{MicrosPerMillion: 75_000}, 1_000_003, "0.075000225"},
		"per unit, some included":               {Price{Included: 3, MicrosPerMillion: 75_000}, 1_000_003, "0.075"},
	} {
		sum, bands := c.price.Rate(c.units)
		if sum.Decimal() != c.want {
			t.Errorf("%s: %s, not %s", name, sum.Decimal(), c.want)
		}
		for i, b := range bands {
			if i > 0 && b.Units == 0 {
				t.Errorf("%s: a band of nothing", name)
			}
		}
	}
}

// However usage is cut, the graduated price of all of it is what each unit costs.
func TestGraduatedPricesAreTheSumOfTheirUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Price{Scheme: Graduated, Included: rapid.Int64Range(0, 12).Draw(t, "included")}
		last := int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "tiers") {
			last += rapid.Int64Range(1, 9).Draw(t, "size")
			p.Tiers = append(p.Tiers, Tier{last, rapid.Int64Range(0, 50).Draw(t, "price")})
		}
		p.Tiers = append(p.Tiers, Tier{0, rapid.Int64Range(0, 50).Draw(t, "price")})
		units := rapid.Int64Range(0, 60).Draw(t, "units")
		want := int64(0)
		for u := p.Included + 1; u <= units; u++ {
			want += p.reached(u)
		}
		if got, _ := p.Rate(units); got.Big().Int64() != want {
			t.Fatalf("%d units: %s, not %d", units, got, want)
		}
	})
}

func TestPiecesOfAFeeAddUpToIt(t *testing.T) {
	day := int64(86_400)
	for i, want := range []int64{333, 334, 333} {
		if got := Piece(1000, int64(i)*10*day, int64(i+1)*10*day, 30*day); got != want {
			t.Errorf("piece %d is %d", i, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		fee, whole := rapid.Int64Range(0, 1_000_000_000_000).Draw(t, "fee"), rapid.Int64Range(1, 40*day).Draw(t, "whole")
		sum, from := int64(0), int64(0)
		for from < whole {
			to := rapid.Int64Range(from+1, whole).Draw(t, "to")
			sum, from = sum+Piece(fee, from, to, whole), to
		}
		if sum != fee {
			t.Fatalf("the pieces of %d are %d", fee, sum)
		}
	})
}
