// Package usage keeps the one set of books: from an admitted call to the sums
// that limits, pages, exports and invoices all read.
//
// Every call that a client saw end has exactly one terminal Event, and at most
// one correction; every sum anywhere is a sum of those. The way of an event:
//
//	Meter      admits by the limits engine, and ends each call once
//	Spool      one directory per instance: an admission before the call goes out,
//	           the event before its last byte reaches the client
//	Publisher  signed runs of events to the queue, sent again until Postgres has them
//	Worker     one transaction per message: events, rollups, cap totals, dead
//	           letters, and the numbers that are committed
//	Reports, Books, Reconcile
//	           what people, the limits engine and the nightly check read
//
// The invariants, whichever process dies, and whatever the queue loses, repeats
// or reorders:
//
//   - An event leaves the spool only after its number is committed in Postgres;
//     numbers run 1, 2, 3 … per instance and shard, so a gap shows, and heals.
//   - No number is seen outside before its record is durable, so none is given
//     twice with different contents.
//   - Only rows that a transaction stored are added up in it. A duplicate counts
//     nothing; a poisoned or conflicting event becomes a dead letter in the same
//     transaction; both count as committed, so they block nothing.
//   - Only a message whose signature verifies commits numbers.
//   - Nothing is acknowledged to the queue before the commit.
package usage
