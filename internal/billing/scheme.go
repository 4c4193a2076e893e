package billing

import (
	"encoding/json"
	"math/big"

	"weir/internal/money"
)

// Scheme is how what was used in a period becomes an amount.
type Scheme string

// The schemes.
const (
	PerUnit    Scheme = "per_unit"  // each unit its price
	Graduated  Scheme = "graduated" // each unit the price of the tier that it falls into
	Volume     Scheme = "volume"    // every unit the price of the tier that is reached
	PerPackage Scheme = "package"   // each started package its price
)

// Schemes lists them.
var Schemes = []Scheme{PerUnit, Graduated, Volume, PerPackage}

// Tier is a band of units of a period, counted from its first.
type Tier struct {
	UpTo             int64 `json:"up_to"` // units, the last one included; 0: without end
	MicrosPerMillion int64 `json:"micros_per_million"`
}

// Banded is what a tier, or a price without tiers, took part with.
type Banded struct {
	Units            int64
	MicrosPerMillion int64
	Amount           money.Pico
}

const mostTiers = 20

// Rate is what so many units of one period cost, exactly, and by which bands.
// Nothing is rounded. Units below zero cost nothing.
func (p Price) Rate(units int64) (money.Pico, []Banded) {
	billed := max(0, units-p.Included)
	var bands []Banded
	add := func(n, micros int64) {
		if n > 0 {
			bands = append(bands, Banded{n, micros, money.Times(n, micros)})
		}
	}
	switch p.Scheme {
	case Graduated:
		from := p.Included
		for _, t := range p.Tiers {
			to := units
			if t.UpTo > 0 {
				to = min(units, t.UpTo)
			}
			add(to-from, t.MicrosPerMillion)
			from = max(from, to)
		}
	case Volume:
		add(billed, p.reached(units))
	case PerPackage:
		packages := billed / p.Package
		if billed%p.Package > 0 {
			packages++
		}
		add(packages*p.Package, p.MicrosPerMillion)
	default:
		add(billed, p.MicrosPerMillion)
	}
	var sum money.Pico
	for _, b := range bands {
		sum = sum.Add(b.Amount)
	}
	return sum, bands
}

// reached is the price of the tier that so many units reach.
func (p Price) reached(units int64) int64 {
	for _, t := range p.Tiers {
		if t.UpTo == 0 || units <= t.UpTo {
			return t.MicrosPerMillion
		}
	}
	return 0
}

// Listed is the price by which a call alone is counted, in reports and spend
// limits: the highest that it can have, before what is included.
func (p Price) Listed() int64 {
	most := p.MicrosPerMillion
	for _, t := range p.Tiers {
		most = max(most, t.MicrosPerMillion)
	}
	return most
}

func (p Price) scheme() Scheme {
	if p.Scheme == "" {
		return PerUnit
	}
	return p.Scheme
}

// tiers are as the database keeps them.
func (p Price) tiers() []byte {
	if len(p.Tiers) == 0 {
		return []byte("[]")
	}
	raw, _ := json.Marshal(p.Tiers) // plain numbers always marshal
	return raw
}

func validPrice(micros int64) bool { return micros >= 0 && micros <= 1_000_000_000_000 }

const mostUnits = 1_000_000_000_000_000

// checkScheme says what of a scheme does not go together.
func (p Price) checkScheme(at func(member, code, message string)) {
	tiered := false
	switch p.Scheme {
	case "", PerUnit, PerPackage:
	case Graduated, Volume:
		tiered = true
	default:
		at("scheme", "not_one_of", "This must be one of per_unit, graduated, volume, package.")
		return
	}
	if p.Included < 0 || p.Included > mostUnits {
		at("included", "out_of_range", "This must be between 0 and 1,000,000,000,000,000 units.")
	}
	switch packaged := p.Scheme == PerPackage; {
	case packaged && (p.Package < 1 || p.Package > 1_000_000_000_000):
		at("package_size", "out_of_range", "A package has between 1 and 1,000,000,000,000 units.")
	case !packaged && p.Package != 0:
		at("package_size", "not_allowed", "Only the scheme package has packages.")
	}
	if tiered != (len(p.Tiers) > 0) {
		at("tiers", "not_allowed", "The schemes graduated and volume have tiers, and no other.")
		return
	}
	p.checkTiers(at)
}

func (p Price) checkTiers(at func(member, code, message string)) {
	if len(p.Tiers) > mostTiers {
		at("tiers", "too_many", "A price has at most 20 tiers.")
		return
	}
	last := int64(0)
	for i, t := range p.Tiers {
		switch open := i == len(p.Tiers)-1; {
		case !validPrice(t.MicrosPerMillion):
			at("tiers", "out_of_range", "The price of a tier must be between 0 and 1,000,000,000,000 micro-units for a million.")
			return
		case open && t.UpTo != 0:
			at("tiers", "out_of_range", "The last tier has no end.")
			return
		case !open && (t.UpTo <= last || t.UpTo > mostUnits):
			at("tiers", "out_of_range", "Each tier ends above the one before.")
			return
		}
		last = t.UpTo
	}
}

// share is part / whole of an amount, half away from zero; 0 of nothing.
func share(amount, part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	n, d := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part)), big.NewInt(whole)
	q, rest := new(big.Int).QuoRem(n, d, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).CmpAbs(d) >= 0 {
		q.Add(q, big.NewInt(int64(n.Sign()*d.Sign())))
	}
	return q.Int64()
}
