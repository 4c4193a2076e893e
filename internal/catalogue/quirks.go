package catalogue

import (
	"net/url"
	"strings"
)

// Quirks are where a vendor's answers differ from what their form means
// elsewhere, by the address that a key calls: many keys of known vendors are
// kept as custom ones.
type Quirks struct {
	Zone           string // in which its daily quotas end; "": not known
	RequestsPerDay bool   // x-ratelimit-*-requests count a day
	SpendIn400     bool   // a spend limit comes as a 400 that says so
}

// The vendors, by the end of their host names. Groq's requests figures are per
// day (console.groq.com/docs/rate-limits); Gemini's days end at midnight Pacific
// (ai.google.dev/gemini-api/docs/rate-limits); Anthropic answers 400 at a limit
// that a workspace set for itself.
var quirks = []struct {
	host string
	q    Quirks
}{
	{"api.groq.com", Quirks{Zone: "UTC", RequestsPerDay: true}},
	{"googleapis.com", Quirks{Zone: "America/Los_Angeles"}},
	{"api.anthropic.com", Quirks{SpendIn400: true}},
}

// QuirksOf are those of the vendor at a base URL.
func QuirksOf(baseURL string) Quirks {
	u, err := url.Parse(baseURL)
	if err != nil {
		return Quirks{}
	}
	host := strings.ToLower(u.Hostname())
	for _, x := range quirks {
		if host == x.host || strings.HasSuffix(host, "."+x.host) {
			return x.q
		}
	}
	return Quirks{}
}
