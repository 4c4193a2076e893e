// Package limits decides whether a call may pass, and keeps what it took.
//
// A limit is a ceiling on one dimension over one window at one scope; a ledger
// is its state. A call is reserved at its estimate and settled at what it really
// was: Reserve checks every ledger that the call touches and charges all of
// them, or none. A refusal is a result, not an error: an error means that the
// limiter itself could not answer, and is never to be read as "unlimited".
//
// # The interface of a backend
//
// Limits are compiled once, when they are read, into a Set, which is immutable
// and kept for as long as they stand; a Request names the sets of the scopes
// that a call is under. What a backend answers, limitstest states and tests
// (limitstest.Engine):
//
//   - Reserve: plan ledgers and the first candidate that fits, in one atomic
//     step. The same id with the same figures is answered again while it is
//     open; anything else is a Conflict, and changes nothing.
//   - Settle, Cancel: the first outcome stands. The same again is told with
//     First false, another is a Conflict that comes with the one that stands.
//   - Move: the candidate's part of one attempt is settled and that of the next
//     is charged, in one step. Attempts are numbered, so that a repeated Move is
//     answered alike.
//   - Extend, Expire: a reservation that runs out frees its slots and stays
//     charged; one late outcome corrects it.
//   - Restore, Recall: reservations of an earlier life, open and expired.
//   - Live: states without charging.
//
// One instant, read once, decides an operation. Refusals carry the exact wait
// for the very call. A limit in shadow mode is weighed like any other and its
// state says Refuses, but it is in no violation, and a call that it would refuse
// is not charged to it.
//
// Rules are alike in every backend because the arithmetic is: bucket.go,
// history.go, sliding.go, calendar.go, gauge.go and sum.go know neither clock nor
// storage. A ledger's name (Limit.LedgerOf) is its identity everywhere; ident is
// the same in 128 bits.
//
// A call may wait for room (wait.go): first come, first served at each ledger
// within the process. Whoever comes later leaves room for those who wait.
//
// # Policies
//
// A bucket refills continuously up to its ceiling, in exact integers
// (bucket.go). A sliding window counts in sub-buckets, each of which counts whole
// until all of it has left the window (sliding.go). A calendar window counts up
// and starts again at the first instant of a day or month of its zone
// (calendar.go); money in it is exact to the pico-unit, as the books are. A gauge
// counts leases that end with their reservation (gauge.go).
//
// When a limit changes its amount, what is used stays. When it changes its
// policy, what is used of a bucket becomes the current sub-bucket, and the sum of
// sub-buckets what is used of the bucket; calls charged before that get nothing
// back.
//
// # Settling
//
// An overrun is charged in full: a bucket may go into debt, at most one ceiling
// below zero, and windows take the whole figure. What is given back to a bucket
// is what it would hold had the call been charged its actual cost from the start,
// no more (history.go), so that the bound printed by MaxIn60s holds for actual
// tokens, by admission time, whenever the calls are settled. Sliding windows and
// calendar windows are corrected where they were charged, or not at all.
//
// # What a tenant can make
//
// A limit for each model or each end user makes a ledger for every name that
// calls state. Beyond MaxNames ledgers of one limit, all further names share one
// ledger: stricter, never looser, until others are unused and dropped. Beyond
// MaxLedgers ledgers or MaxOpen reservations of one tenant, a call that needs one
// more fails with limiter_unavailable; calls on ledgers that exist go on. The last
// quarter of MaxLedgers is not for names, nor for client tokens: callers make those
// as they like. Redis counts no ledgers but names; there what is unused expires. At most
// MaxOutcomes ended reservations are remembered, the oldest forgotten first. At
// most 100 calls of a customer wait, and 2,000 of a tenant; one more is refused.
//
// # Storage
//
// Memory keeps ledgers as plain values in slabs, by kind, without pointers, and
// finds them by ident; a compiled rule remembers where its ledger was last. A
// ledger that says nothing (a full bucket, an empty or ended window, a gauge
// without leases) is dropped by Expire.
//
// Redis keeps a tenant's ledgers in groups, one packed string for each scope, and
// under a tenant's hash tag: {ten_…} is its head (the latest instant seen, how many
// reservations are open), {ten_…}g… a group, {ten_…}r… a reservation, {ten_…}o the
// open ones by expiry, {ten_…}l those that have run out and were not handed out yet,
// {ten_…}N… the names of a limit for each model or end user. A decision, and what
// follows it, are one atomic script each, which reads Redis's clock once. It begins
// with the usual case (swift_reserve.lua, swift_settle.lua): every ledger is there,
// none slides, nothing else is due. What is not usual falls through, with nothing
// changed, to the functions of any case (ledgers.lua, charges.lua), which are made
// only then. Every key expires once it says nothing.
//
// # Failure
//
// Memory keeps everything in the process. Calendar windows that began before
// the process did are loaded through Books, once each; a Books that fails makes
// the call fail with limiter_unavailable. Buckets and sliding windows come from a
// snapshot and a journal of what was admitted and settled after it, which are
// replayed at the instants of then (journal.go). Without them, those of scopes
// that existed before count as spent at the last sign of life: the refusing side.
//
// On Redis, a calendar window that is absent is loaded if it began before the
// tenant's head was made, and set if it is still absent: once, however many
// processes ask. So a Redis that was emptied gives no cap back.
//
// While Redis does not answer within its budget, a process decides by itself, and
// after three failures in a row asks it no more until probes are answered in time,
// the more of them in a row the sooner it failed again. The strictest Outage of the
// limits that a call touches counts:
//
//   - share: each process grants what it last saw left, divided by the number of
//     processes, and refills at that part of the rate, for at most five minutes;
//     then calls fail. Of a calendar window that it did not see for a second, the
//     books are asked too. Within the minute of the switch at most one ceiling
//     passes beyond the bound of MaxIn60s; a calendar window is exceeded by what
//     other processes took after the last look, at most.
//   - closed: calls fail with limiter_unavailable; nothing passes.
//   - open: calls pass, without a bound.
//
// Settlements are taken all the same. When Redis is back, each process tells it
// everything that it admitted and settled meanwhile before it asks it again, so all
// of it counts, against calendar windows too. Until all processes have told
// (redis_present.go), none of them goes beyond its own share either; one that is
// not heard of for five seconds is waited for no more. Where only one process was
// cut off, what it granted comes beyond what Redis granted to the others.
//
// A Redis that was emptied loads calendar windows from the books, takes the open
// reservations of each process back, and is told what ended of late. A window keeps
// which reading of the books it began with, and what that reading held is not added
// again (redis_adopt.go): so all of it counts once. Until each process has told, a
// moment after its next call, calls that are under way may pass too many. Its minute
// windows start anew: at most one ceiling more, once. Exact is this for calls that
// ended up to two minutes before; of those that ended earlier, what the books had
// not yet taken in counts only from the next reading on. A replica that took over
// without the latest writes has lost them: what it missed of reservations and
// outcomes is charged neither to minutes nor, until its next loading, to days.
//
// A call whose answer was lost stays charged until it has run out; a minute later
// its charges are given back (usage.Meter).
//
// # Concurrency
//
// All methods of Memory are safe for concurrent use. The tenant is the unit of
// locking: one mutex each, held for arithmetic only, never for I/O, so one hot
// tenant slows no other. The methods of Redis are, too, across processes. Limits
// handed to either are shared, never written; callers don't change them
// afterwards.
package limits
