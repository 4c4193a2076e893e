package usage

import (
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/money"
)

const (
	maxTokens  = 1_000_000_000
	maxAmount  = 1_000_000_000_000_000
	maxEntries = 1000
	picos      = 1_000_000      // in a micro-unit
	longestDay = 49 * time.Hour // a day of admission, over a change of zone
)

var (
	maxPico     = new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	refusedForm = regexp.MustCompile(`^refused_[a-z_]{1,60}$`)
	plainForm   = regexp.MustCompile(`^[a-z_]{1,40}$`)
)

// wrong names the first thing for which the books cannot take e, or is "". It
// needs neither clock nor database, so that spool and worker answer alike.
func (e *Event) wrong() string {
	switch {
	case e.Version != version:
		return "unknown_version"
	case e.ID.Version() != 7 || e.Tenant == uuid.Nil || e.RequestID == uuid.Nil:
		return "bad_id"
	case !e.knownOutcome() || !plainForm.MatchString(e.Kind):
		return "bad_outcome"
	case !money.ValidCurrency(e.Currency) || (e.Cost == nil) != (e.CostCurrency == "") || e.Cost != nil && !money.ValidCurrency(e.CostCurrency):
		return "bad_currency"
	case !e.countsMakeSense() || !e.moneyMakesSense():
		return "absurd_count"
	case !e.timesMakeSense():
		return "absurd_time"
	case !e.textsMakeSense():
		return "bad_text"
	}
	return ""
}

func (e *Event) knownOutcome() bool {
	switch e.Outcome {
	case OK, ClientError, ProviderError, ProviderLimited, Aborted, Expired:
		return e.Refused == 0 && e.Corrects == uuid.Nil
	case Correction:
		return e.Refused == 0 && e.Corrects != uuid.Nil
	}
	return refusedForm.MatchString(string(e.Outcome)) && e.Refused > 0 && e.Requests == 0
}

// countsMakeSense allows signed differences to corrections only.
func (e *Event) countsMakeSense() bool {
	least := func(most int64) int64 {
		if e.Outcome == Correction {
			return -most
		}
		return 0
	}
	within := func(n, most int64) bool { return n >= least(most) && n <= most }
	t := e.Tokens
	for _, n := range []int64{t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning} {
		if !within(n, maxTokens) {
			return false
		}
	}
	for _, c := range e.Charges {
		if c.Amount < -maxAmount || c.Amount > maxAmount || c.Pico <= -picos || c.Pico >= picos {
			return false
		}
	}
	return within(e.Units, maxAmount) && e.Guess >= 0 && e.Guess <= maxTokens && within(e.Requests, 1) && e.Refused <= maxTokens &&
		len(e.Charges) <= maxEntries && len(e.Attempts) <= maxEntries && len(e.Tags) <= maxEntries && len(e.Prices) <= maxEntries
}

func (e *Event) moneyMakesSense() bool {
	ok := func(p money.Pico) bool {
		return p.Big().CmpAbs(maxPico) <= 0 && (e.Outcome == Correction || p.Sign() >= 0)
	}
	return ok(e.Charge) && (e.Cost == nil || ok(*e.Cost))
}

// timesMakeSense holds the event to the partition that its id names, and to its
// tenant's day.
func (e *Event) timesMakeSense() bool {
	minted := id.Time(e.ID).Sub(e.StartedAt)
	day := e.StartedAt.Sub(e.LocalDay)
	return e.StartedAt.Year() >= 2020 && e.StartedAt.Year() < 2200 && e.EndedAt.Year() >= 2020 && e.EndedAt.Year() < 2200 &&
		minted.Abs() < time.Hour && day >= 0 && day < longestDay
}

func (e *Event) textsMakeSense() bool {
	ok := func(s string, most int) bool {
		return len(s) <= most && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
	}
	for k, v := range e.Tags {
		if !ok(k, maxUser) || !ok(v, maxUser) {
			return false
		}
	}
	for _, c := range e.Charges {
		if c.Ledger == "" || !ok(c.Ledger, maxLedger) {
			return false
		}
	}
	return ok(e.EndUser, maxUser) && ok(e.ModelAsked, maxModel) && ok(e.ModelServed, maxModel) && ok(e.Estimated, maxText)
}
