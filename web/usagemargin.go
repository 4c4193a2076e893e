package web

import (
	"math/big"
	"strconv"

	"weir/internal/usage"
	"weir/web/ui"
)

// marginShare is what is left of a hundred of what is billed, where all of it is
// in one currency and every call has a price.
func marginShare(s usage.Sums) string {
	if len(s.Charges) != 1 || len(s.Costs) > 1 || len(s.Costs) == 1 && s.Costs[0].Currency != s.Charges[0].Currency || s.Charges[0].Amount.Sign() <= 0 {
		return "–"
	}
	charged := new(big.Float).SetInt(s.Charges[0].Amount.Big())
	share, _ := new(big.Float).Quo(new(big.Float).SetInt(s.Margins()[0].Amount.Big()), charged).Float64()
	words := strconv.FormatFloat(100*share, 'f', 1, 64) + "%"
	if s.Unpriced > 0 {
		return "at most " + words
	}
	return words
}

// unpriced says of how many calls the cost is not known.
func unpriced(s usage.Sums) string {
	if s.Unpriced == 0 {
		return ""
	}
	return ui.Of(s.Unpriced, "call", "calls") + " without a price"
}

// mixed tells that what is billed and what it costs are in several currencies,
// which are never added up.
func (u usagePage) mixed() bool {
	return len(currenciesOf(u.Report.Totals, u.Tenant.Currency)) > 1
}
