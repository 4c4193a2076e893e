package quotes

import (
	"fmt"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
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

// Line is a line of an estimate.
type Line struct {
	Volume        // zero of the base fee
	AmountMinor   int64
	Priced        bool // false: the plan has no price for the model
	IsFee         bool
	AmountPrecise money.Pico
}

// Estimate is what a month costs at stated volumes: a line for the base fee,
// one for each volume, each rounded once, and their sum. It promises nothing.
func Estimate(v billing.Version, volumes []Volume) (lines []Line, totalMinor int64, err error) {
	if v.BaseFee > 0 {
		lines = append(lines, Line{IsFee: true, Priced: true, AmountMinor: v.BaseFee})
	}
	for _, vol := range volumes {
		rates := billing.RatesFor(v.Prices, vol.Model)
		l := Line{Volume: vol, Priced: len(rates) > 0}
		l.AmountPrecise, _ = usage.Charge(rates, vol.cost())
		if l.AmountMinor, err = l.AmountPrecise.Minor(v.Currency); err != nil {
			return nil, 0, err
		}
		lines = append(lines, l)
	}
	for _, l := range lines {
		totalMinor += l.AmountMinor
	}
	return lines, totalMinor, nil
}

func (v Volume) cost() limits.Cost {
	return limits.Cost{Requests: v.Requests, Tokens: limits.Tokens{Input: v.Input, CachedInput: v.CachedInput, Output: v.Output}}
}
