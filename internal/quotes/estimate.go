package quotes

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/usage"
)

// Volume is what a customer expects to use of a model in a month.
type Volume struct {
	Model       string `json:"model"`
	Requests    int64  `json:"requests,omitempty"`
	Input       int64  `json:"input_tokens,omitempty"` // without what is read from a cache
	CachedInput int64  `json:"cached_input_tokens,omitempty"`
	Output      int64  `json:"output_tokens,omitempty"`
}

const (
	mostVolumes = 50
	mostVolume  = 1_000_000_000_000
)

func checkVolumes(list []Volume) (wrong []fault.Field) {
	if len(list) > mostVolumes {
		return []fault.Field{{Pointer: "/volumes", Code: "too_many", Message: "A quote states volumes of at most 50 models."}}
	}
	seen := map[string]bool{}
	for i, v := range list {
		at := fmt.Sprintf("/volumes/%d/", i)
		if !catalogue.ValidModel(v.Model) {
			wrong = append(wrong, fault.Field{Pointer: at + "model", Code: "bad_model", Message: "This is not a model name such as gpt-4o."})
		}
		if seen[v.Model] {
			wrong = append(wrong, fault.Field{Pointer: at + "model", Code: "duplicate", Message: "Another line states the same model."})
		}
		seen[v.Model] = true
		for _, n := range []struct {
			member string
			value  int64
		}{{"requests", v.Requests}, {"input_tokens", v.Input}, {"cached_input_tokens", v.CachedInput}, {"output_tokens", v.Output}} {
			if n.value < 0 || n.value > mostVolume {
				wrong = append(wrong, fault.Field{Pointer: at + n.member, Code: "out_of_range", Message: "This must be a whole number from 0 to 1,000,000,000,000."})
			}
		}
	}
	return wrong
}

// Line is a line of an estimate: the base fee, or a price of the plan with all
// that it would count.
type Line struct {
	Fee         bool
	Price       billing.Price // zero of the base fee
	Units       int64         // tokens, requests or units
	AmountMinor int64
}

// Estimated is what a month costs at stated volumes.
type Estimated struct {
	Lines      []Line
	Minimum    int64    // minor units that the plan's minimum adds; 0: none
	TotalMinor int64    // the sum of the rounded lines and the minimum, before tax
	Unpriced   []string // models that no price of the plan counts
}

// Estimate is what a month costs at stated volumes, by the rating that invoices
// have: a line for the base fee and one for each price that counts something,
// each rounded once. It promises nothing. A sum beyond 64 bits is an error.
func Estimate(v billing.Version, volumes []Volume) (e Estimated, err error) {
	prices := slices.Clone(v.Prices)
	for i := range prices {
		prices[i].ID = id.New() // of a version that is not kept they have none
	}
	units := map[uuid.UUID]int64{}
	for _, vol := range volumes {
		rates := billing.RatesFor(prices, vol.Model)
		if len(rates) == 0 {
			e.Unpriced = append(e.Unpriced, vol.Model)
		}
		for _, r := range rates {
			units[r.Price] += vol.of(r.Class)
		}
	}
	if v.BaseFee > 0 {
		e.Lines = append(e.Lines, Line{Fee: true, AmountMinor: v.BaseFee})
	}
	for _, p := range prices {
		if units[p.ID] == 0 {
			continue
		}
		l := Line{Price: p, Units: units[p.ID]}
		sum, _ := p.Rate(l.Units)
		if l.AmountMinor, err = sum.Minor(v.Currency); err != nil {
			return e, err
		}
		e.Lines = append(e.Lines, l)
	}
	for _, l := range e.Lines {
		e.TotalMinor += l.AmountMinor
	}
	if e.Minimum = max(0, v.Minimum-e.TotalMinor); e.Minimum > 0 {
		e.TotalMinor = v.Minimum
	}
	return e, nil
}

func (v Volume) of(c usage.Class) int64 {
	switch c {
	case usage.Input:
		return v.Input
	case usage.CachedInput:
		return v.CachedInput
	case usage.Output:
		return v.Output
	case usage.PerRequest:
		return v.Requests
	}
	return 0
}
