// Package limits decides whether a call may pass, and keeps what it took.
//
// A limit is a ceiling on one dimension over one window at one scope; a ledger
// is its state. A call is reserved at its estimate and settled at what it really
// was: Reserve checks every ledger that the call touches and charges all of
// them, or none. A refusal is a result, not an error: an error means that the
// limiter itself could not answer, and is never to be read as "unlimited".
//
// # Policies
//
// A bucket refills continuously up to its ceiling, in exact integers
// (bucket.go). A calendar window counts up and starts again at the first
// instant of a day or month of its zone (calendar.go). A gauge counts leases
// that end with their reservation (gauge.go).
//
// # Settling
//
// An overrun is charged in full: a bucket may go into debt, at most one ceiling
// below zero, and a calendar window takes the whole figure. What is given back
// is what the bucket would hold had the call been charged its actual cost from
// the start, no more (history.go), so that the bound printed by MaxIn60s holds
// for actual tokens, by admission time, whenever the calls are settled.
//
// # Failure
//
// Memory keeps everything in the process. Calendar windows that began before
// the process did are loaded through Books, once each; a Books that fails makes
// the call fail with limiter_unavailable. After an unclean start, buckets of
// scopes that existed before start empty: the refusing side.
//
// # Concurrency
//
// All methods of Memory are safe for concurrent use. The tenant is the unit of
// locking: one mutex each, held for arithmetic only, never for I/O, so one hot
// tenant slows no other. Limits handed to it are shared, never written; callers
// don't change them afterwards.
package limits
