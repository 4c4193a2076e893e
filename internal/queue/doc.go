// Package queue carries runs of usage events from the instances to the workers
// over one JetStream stream.
//
// It promises little on purpose: a published message may be lost, repeated or
// reordered, and the two ends balance the books all the same (an instance keeps
// its events on disk until Postgres has them; the primary key in Postgres
// refuses duplicates). What it does promise: Publish returns nil only when the
// server has taken the message, a full stream refuses instead of dropping, and a
// message that a handler did not finish comes again. Both ends may start while
// the server is down, and both find it again when it is back.
package queue
