package queuetest

import "go.uber.org/goleak"

const inside = "github.com/nats-io/nats-server/v2/server"

// Leaks are what the server itself leaves behind when it is stopped in the
// moment in which a stream is being made: its own goroutines, none of ours.
func Leaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction(inside + ".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction(inside + "/ats.Register.func1"),
	}
}
