package catalogue

import (
	"slices"
	"strings"
	"time"

	"weir/internal/limits"
)

// Model is what a provider says of one of its models, from a day on.
type Model struct {
	Provider, Model string
	Context         int64 // tokens that prompt and answer may have together; 0: not known
	MaxOutput       int64 // tokens of an answer at most; 0: not known
	DefaultOutput   int64 // tokens of an answer where a call states no ceiling; 0: not known
	Input           []string
	Tools           bool
	ValidFrom       time.Time
	Source          string
}

// Published is one quota that a provider publishes for accounts of a tier. Model
// is a name, or a pattern whose models share the quota: * is the whole account.
type Published struct {
	Provider, Model, Tier string
	Dimension             limits.Dimension
	Window                limits.Window
	Amount                int64
	CachedFree            bool // cached input does not count
	ValidFrom             time.Time
	ValidTo               time.Time // zero: it has no end
	Source                string
}

// Class is what a price is for: a token class, or PerRequest.
type Class string

// PerRequest is the class of what a request costs whatever its tokens are.
const PerRequest Class = "request"

// classes are those that may have a price.
var classes = []Class{
	Class(limits.ClassInput), Class(limits.ClassCachedInput), Class(limits.ClassCacheWrite), Class(limits.ClassOutput), Class(limits.ClassReasoning), PerRequest,
}

// Price is what a provider charges, from a day on. Model is a name or a pattern.
type Price struct {
	Provider, Model  string
	Class            Class
	Above            int64 // it counts for prompts of more tokens than this
	MicrosPerMillion int64 // millionths of the currency for a million tokens or requests
	Currency         string
	ValidFrom        time.Time
	Source           string
}

// inputs are what a model may take beside text.
var inputs = []string{"text", "image", "audio", "video", "file"}

const (
	dayForm   = "2006-01-02"
	mostCount = 1_000_000_000_000
)

var modelSheet = sheet[Model]{
	kind:    "models",
	columns: []string{"provider", "model", "context", "max_output", "default_output", "input", "tools", "valid_from", "source"},
	read: func(c *cells) Model {
		m := Model{
			Provider: c.provider(), Model: c.model(), Context: c.whole("context", true), MaxOutput: c.whole("max_output", true),
			DefaultOutput: c.whole("default_output", true), Input: strings.Fields(c.text("input", 60)), Tools: c.oneOf("tools", "true", "false") == "true",
			ValidFrom: c.day("valid_from", false), Source: c.text("source", 500),
		}
		for _, i := range m.Input {
			if !slices.Contains(inputs, i) {
				c.refuse("input", "not_one_of", "it is some of "+strings.Join(inputs, ", ")+", parted by spaces")
			}
		}
		return m
	},
	write: func(m Model) []string {
		tools := "false"
		if m.Tools {
			tools = "true"
		}
		return []string{m.Provider, m.Model, unlessZero(m.Context), unlessZero(m.MaxOutput), unlessZero(m.DefaultOutput), strings.Join(m.Input, " "), tools, day(m.ValidFrom), m.Source}
	},
	key: func(m Model) string { return strings.Join([]string{m.Provider, m.Model, day(m.ValidFrom)}, "\x00") },
}

var limitSheet = sheet[Published]{
	kind:    "limits",
	columns: []string{"provider", "model", "tier", "dimension", "window", "amount", "cached_input", "valid_from", "valid_to", "source"},
	read: func(c *cells) Published {
		p := Published{
			Provider: c.provider(), Model: c.model(), Tier: c.text("tier", 60),
			Dimension: limits.Dimension(c.oneOf("dimension", "requests", "tokens", "input_tokens", "output_tokens", "concurrency")),
			Window:    limits.Window(c.oneOf("window", "minute", "day", "month", "rolling_day", "none")),
			Amount:    c.whole("amount", false), CachedFree: c.oneOf("cached_input", "counted", "free") == "free",
			ValidFrom: c.day("valid_from", false), ValidTo: c.day("valid_to", true), Source: c.text("source", 500),
		}
		if !p.ValidTo.IsZero() && !p.ValidTo.After(p.ValidFrom) {
			c.refuse("valid_to", "out_of_range", "it must be after valid_from, or empty")
		}
		if len(c.wrong) == 0 {
			for _, f := range limits.Check([]limits.Limit{p.limit()}) {
				c.refuse(strings.TrimPrefix(f.Pointer, "/limits/0/"), f.Code, f.Message)
			}
		}
		return p
	},
	write: func(p Published) []string {
		cached, to := "counted", ""
		if p.CachedFree {
			cached = "free"
		}
		if !p.ValidTo.IsZero() {
			to = day(p.ValidTo)
		}
		return []string{p.Provider, p.Model, p.Tier, string(p.Dimension), string(p.Window), whole(p.Amount), cached, day(p.ValidFrom), to, p.Source}
	},
	key: func(p Published) string {
		return strings.Join([]string{p.Provider, p.Model, p.Tier, string(p.Dimension), string(p.Window), day(p.ValidFrom)}, "\x00")
	},
}

var priceSheet = sheet[Price]{
	kind:    "prices",
	columns: []string{"provider", "model", "class", "above", "micros_per_million", "currency", "valid_from", "source"},
	read: func(c *cells) Price {
		var names []string
		for _, x := range classes {
			names = append(names, string(x))
		}
		return Price{
			Provider: c.provider(), Model: c.model(), Class: Class(c.oneOf("class", names...)), Above: c.whole("above", true),
			MicrosPerMillion: c.whole("micros_per_million", false), Currency: c.currency(), ValidFrom: c.day("valid_from", false), Source: c.text("source", 500),
		}
	},
	write: func(p Price) []string {
		return []string{p.Provider, p.Model, string(p.Class), whole(p.Above), whole(p.MicrosPerMillion), p.Currency, day(p.ValidFrom), p.Source}
	},
	key: func(p Price) string {
		return strings.Join([]string{p.Provider, p.Model, string(p.Class), whole(p.Above), day(p.ValidFrom)}, "\x00")
	},
}
