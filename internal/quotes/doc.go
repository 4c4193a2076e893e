// Package quotes owns the offers that a tenant makes: a quote is a dated, priced
// offer of a plan version to one customer, and becomes customer, subscription
// and API key when it is accepted, in one transaction.
//
// A quote has versions. One version at most is a draft, and one at most is out;
// what was sent is frozen, and a change makes the next version, which supersedes
// the one before when it is sent. All versions have one link.
//
//	draft → sent → viewed → accepted | declined | expired | withdrawn
//
// A quote that is declined, expired or withdrawn can be revised and sent again;
// one that is accepted is history. Every change locks the quote's row first, so
// that the same change asked for twice, one after the other or at once, has one
// result.
package quotes
