package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"weir/internal/limits"
)

const (
	promptTokens = 40
	maxOutput    = 500
)

// op is one call: what it is to be, and what its client saw of it.
type op struct {
	user                string // names the call, and says how the provider answers it
	kind                string // chat, stream, or what becomes of a reservation: settle, cancel, abandon, hold, late
	words, delay, pause int    // of the provider; ms before the first byte, ms before each event
	prompt              string
	ttl                 int64 // seconds, of a reservation
	actual              int64 // output tokens that a reservation is settled with

	cut    bool           // the client did not see its end
	handed bool           // its client will end it later
	seen   *limits.Tokens // the usage that the client was told, or settled with

	reservation string // its id, once the client knows it
	late        bool   // the client was told that it had expired, and was corrected
	failed      bool   // it was answered as no call may be
}

// newOp chooses a call, a short one.
func newOp(n int64, random *rand.Rand) op {
	kinds := []string{"chat", "chat", "chat", "stream", "stream", "stream", "settle", "settle", "hold", "cancel", "abandon", "late"}
	o := op{kind: kinds[random.IntN(len(kinds))], words: 1 + random.IntN(20), delay: random.IntN(30), pause: random.IntN(8), ttl: 6}
	if o.kind == "abandon" || o.kind == "late" {
		o.ttl = 1
	}
	o.actual, o.prompt = random.Int64N(2*maxOutput), strings.Repeat("a weir ", random.IntN(20))
	o.user = o.name(n)
	return o
}

// name says in the call itself how the provider is to answer it.
func (o *op) name(n int64) string {
	return fmt.Sprintf("%d-%s-%d-%d-%d", n, o.kind, o.words, o.delay, o.pause)
}

// parseOp reads what the name of a call says.
func parseOp(user string) (o op, ok bool) {
	var n int64
	fields := strings.SplitN(user, "-", 3)
	if len(fields) != 3 {
		return o, false
	}
	o.user, o.kind = user, fields[1]
	_, errN := fmt.Sscan(fields[0], &n)
	_, err := fmt.Sscanf(fields[2], "%d-%d-%d", &o.words, &o.delay, &o.pause)
	return o, errN == nil && err == nil
}

func (o *op) String() string { return fmt.Sprintf("call %s %s", o.user, o.reservation) }

// ledger keeps what the clients saw. It is safe for concurrent use.
type ledger struct {
	mu  sync.Mutex
	ops []op
}

func (l *ledger) add(o op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, o)
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ops)
}
