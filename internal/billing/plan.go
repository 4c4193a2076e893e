package billing

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// Plan is a named offer. Its versions hold what is offered.
type Plan struct {
	ID        uuid.UUID
	Name      string
	Quote     uuid.UUID // the one that alone offers it; zero: a plan of the list
	CreatedAt time.Time
	Version   Version // the published one; the newest where none is published
}

// VersionStatus is where a version stands.
type VersionStatus string

// The states of a plan version.
const (
	Draft     VersionStatus = "draft"
	Published VersionStatus = "published"
	Retired   VersionStatus = "retired"
)

// Version is one immutable statement of a plan. It changes only while it is a
// draft.
type Version struct {
	ID          uuid.UUID
	Number      int
	Status      VersionStatus
	Limits      []limits.Limit
	Prices      []Price
	BaseFee     int64 // minor units of Currency, each period
	Currency    string
	Period      string // month
	Minimum     int64  // minor units of Currency: the least of each whole period
	TrialDays   int    // from the start of a subscription; never billed
	CapOutput   bool   // an answer whose call states no ceiling gets one: what is reserved for it
	CreatedAt   time.Time
	PublishedAt *time.Time
}

// NewVersion is what a version starts from.
type NewVersion struct {
	Limits  []limits.Limit
	Prices  []Price
	BaseFee *money.Amount // nil: none, in the tenant's currency
	Minimum *money.Amount // nil: none
	Period  string        // "" is month

	TrialDays int
	CapOutput bool
}

const maxLines = 200

// checked returns n with defaults and the fee in minor units, or every field
// that is wrong.
func (n NewVersion) checked(tenantCurrency string) (NewVersion, amounts, []fault.Field) {
	if n.Period == "" {
		n.Period = "month"
	}
	var wrong []fault.Field
	if n.Period != "month" {
		wrong = append(wrong, fault.Field{Pointer: "/period", Code: "not_one_of", Message: "A period is a month."})
	}
	for i := range n.Limits {
		n.Limits[i] = limits.Default(n.Limits[i])
	}
	if len(n.Limits) > maxLines {
		wrong = append(wrong, fault.Field{Pointer: "/limits", Code: "too_many", Message: "A plan has at most 200 limits."})
	} else {
		wrong = append(wrong, limits.Check(n.Limits)...)
	}
	wrong = append(wrong, checkPrices(n.Prices)...)
	if n.TrialDays < 0 || n.TrialDays > 365 {
		wrong = append(wrong, fault.Field{Pointer: "/trial_days", Code: "out_of_range", Message: "A trial has 0 to 365 days."})
	}
	sums := amounts{currency: tenantCurrency}
	sums.fee, wrong = minor("/base_fee", n.BaseFee, tenantCurrency, wrong)
	sums.minimum, wrong = minor("/minimum", n.Minimum, tenantCurrency, wrong)
	return n, sums, wrong
}

// amounts are those of a version, in minor units of a currency.
type amounts struct {
	fee, minimum int64
	currency     string
}

// minor is an amount in minor units of the tenant's currency; nil is 0.
func minor(pointer string, a *money.Amount, currency string, wrong []fault.Field) (int64, []fault.Field) {
	if a == nil {
		return 0, wrong
	}
	if a.Currency != currency {
		return 0, append(wrong, fault.Field{Pointer: pointer + "/currency", Code: "wrong_currency", Message: "The tenant bills in " + currency + "."})
	}
	n, err := money.ParseMinor(a.Amount, currency)
	if err != nil {
		wrong = append(wrong, fault.Field{Pointer: pointer + "/amount", Code: "bad_amount", Message: "This is not an amount such as \"49.00\": digits, and at most as many decimals as the currency has."})
	}
	return n, wrong
}

func checkPrices(prices []Price) (wrong []fault.Field) {
	if len(prices) > maxLines {
		return []fault.Field{{Pointer: "/prices", Code: "too_many", Message: "A plan has at most 200 price lines."}}
	}
	type line struct {
		models string
		class  usage.Class
	}
	seen := map[line]int{}
	for i, p := range prices {
		at := func(member, code, message string) {
			wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/prices/%d/%s", i, member), Code: code, Message: message})
		}
		if !catalogue.ValidModel(p.Models) {
			at("models", "bad_model", "This is not a model name or pattern such as gpt-4o*.")
		}
		if !slices.Contains(usage.Classes, p.Class) {
			at("class", "not_one_of", "This must be one of input, cached_input, cache_write, output, reasoning, request, unit.")
		}
		if !validPrice(p.MicrosPerMillion) {
			at("micros_per_million", "out_of_range", "This must be between 0 and 1,000,000,000,000 micro-units for a million.")
		}
		p.checkScheme(at)
		if first, twice := seen[line{p.Models, p.Class}]; twice {
			at("class", "duplicate", fmt.Sprintf("Line %d prices the same class of the same models.", first+1))
		}
		seen[line{p.Models, p.Class}] = i
	}
	return wrong
}

// Placed returns the version's limits as they stand for a customer.
func (v Version) Placed(customer uuid.UUID, planName string) []limits.Limit {
	return tenants.Placed(v.Limits, limits.Scope{Kind: limits.ScopeCustomer, ID: customer, Name: planName})
}

// Checked is what SaveDraft would say to n: n with its defaults, or every field
// that is wrong.
func (n NewVersion) Checked(tenantCurrency string) (NewVersion, error) {
	n, _, wrong := n.checked(tenantCurrency)
	if len(wrong) > 0 {
		return n, fault.InvalidFields(wrong...)
	}
	return n, nil
}
