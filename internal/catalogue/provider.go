// Package catalogue knows the providers: where they are, how a call is
// authorised, and when their day ends. It is the only package that puts a
// stored credential on the wire.
package catalogue

import "slices"

// Provider is a vendor of models.
type Provider struct {
	Slug         string
	Name         string
	BaseURL      string // "" where each key brings its own
	Zone         string // IANA zone in which its daily quotas end
	NeedsSecret  bool
	NeedsBaseURL bool
	Practice     bool // served inside the installation, never billed
}

// The providers of this release. OpenAI states no zone for its daily limits;
// its usage days are UTC.
var providers = []Provider{
	{Slug: "openai", Name: "OpenAI", BaseURL: "https://api.openai.com/v1", Zone: "UTC", NeedsSecret: true},
	{Slug: "custom", Name: "Custom, OpenAI-compatible", Zone: "UTC", NeedsBaseURL: true},
	{Slug: "practice", Name: "Practice provider", Zone: "UTC", Practice: true},
}

// Providers lists every provider.
func Providers() []Provider { return slices.Clone(providers) }

// Lookup finds a provider by its slug.
func Lookup(slug string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Slug == slug })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}
