// Package exports makes files of what the books hold: usage reports and the
// request log, as CSV or as lines of JSON.
//
// An export is asked for, made by a worker and kept for a week. The Maker takes
// it under a lease and writes it in pieces into Postgres, so that any replica
// hands it out; each piece renews the lease. A worker that dies leaves the lease
// to run out, and another one begins again. Nothing but a page of rows and one
// piece is ever in memory.
//
// A file ends with a row about itself: how many rows stand before it, the SHA-256
// of every byte before it, and the zone of its times.
package exports
