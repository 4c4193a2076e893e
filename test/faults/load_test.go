package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/limits"
	"weir/test/stack"
)

const clients = 12

// load is a number of clients that call without a pause, as fast as they are
// answered, and note what they saw.
type load struct {
	t      *testing.T
	s      *stack.Stack
	world  stack.World
	ledger *ledger

	ops     atomic.Int64
	began   atomic.Int64 // when the long stream that runs began, in Unix nanoseconds; 0: none runs
	stop    atomic.Bool
	running sync.WaitGroup

	mu       sync.Mutex
	up       chan struct{} // closed when everything has been started again
	restarts int
	waiting  []waiting
}

// run starts the clients. Each has random choices of its own.
func (l *load) run(seed uint64) {
	l.up = make(chan struct{})
	l.running.Go(func() {
		for !l.stop.Load() {
			l.longStream()
		}
	})
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)+1))
		l.running.Go(func() {
			for !l.stop.Load() {
				l.step(random)
			}
		})
	}
}

// resume tells the clients that everything runs again.
func (l *load) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.up)
	l.up = make(chan struct{})
	l.restarts++
}

// longStream makes one call that takes some seconds, long enough to be written
// down while it runs.
func (l *load) longStream() {
	up := l.next()
	o := op{kind: "stream", words: 80, pause: 50}
	o.user = o.name(l.ops.Add(1))
	l.began.Store(time.Now().UnixNano())
	cut := l.chat(&o)
	l.began.Store(0)
	if l.note(o, cut); cut {
		<-up
	}
}

// awaitCheckpoint waits until a stream has been running for so long that it was
// written down what it had used.
func (l *load) awaitCheckpoint() {
	l.t.Helper()
	stack.Eventually(l.t, time.Minute, func() string {
		began := l.began.Load()
		if age := time.Since(time.Unix(0, began)); began == 0 || age < 2500*time.Millisecond {
			return "no stream is old enough"
		}
		return ""
	})
}

// next is closed when everything has been started again the next time.
func (l *load) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// await waits until so many more calls have ended.
func (l *load) await(n int) {
	l.t.Helper()
	goal := l.ledger.size() + n
	stack.Eventually(l.t, time.Minute, func() string {
		if got := l.ledger.size(); got < goal {
			return fmt.Sprintf("%d calls have ended, want %d", got, goal)
		}
		return ""
	})
}

// finish ends the load; what is running ends as it does.
func (l *load) finish() {
	l.stop.Store(true)
	l.resume()
	l.running.Wait()
	for len(l.waiting) > 0 {
		if o, ok := l.due(); ok {
			cut := l.end(&o, nil)
			l.note(o, cut)
			continue
		}
		<-time.After(20 * time.Millisecond)
	}
}

// step makes one call, or ends a reservation that waited. A client whose call
// was cut waits until everything runs again.
func (l *load) step(random *rand.Rand) {
	up := l.next()
	if o, ok := l.due(); ok {
		cut := l.end(&o, up)
		l.note(o, cut)
		return
	}
	o := newOp(l.ops.Add(1), random)
	var cut bool
	switch o.kind {
	case "chat", "stream":
		cut = l.chat(&o)
	default:
		cut = l.decide(&o, up)
	}
	l.note(o, cut)
	if cut {
		<-up
	}
}

func (l *load) note(o op, cut bool) {
	if o.cut = cut; !o.handed || cut {
		l.ledger.add(o)
	}
}

// chat makes a call through the gateway. Its end has been seen when the whole
// answer is there: of a stream, [DONE].
func (l *load) chat(o *op) (cut bool) {
	body := fmt.Sprintf(`{"model": "test-small", "user": %q, "max_tokens": %d, "messages": [{"role": "user", "content": %q}]`, o.user, maxOutput, o.prompt)
	if o.kind == "stream" {
		body += `, "stream": true, "stream_options": {"include_usage": true}`
	}
	a, err := l.s.Do(context.Background(), "POST", "/v1/chat/completions", l.world.Key, body+"}")
	switch {
	case err != nil:
		return true
	case a.Status != 200, o.kind == "stream" && !strings.HasSuffix(string(a.Body), "data: [DONE]\n\n"):
		l.failed(o, a)
		return false
	}
	o.seen = l.tokens(o, a)
	return false
}

var usageSeen = regexp.MustCompile(`"prompt_tokens":(\d+),"completion_tokens":(\d+),"total_tokens":\d+,"prompt_tokens_details":\{"cached_tokens":(\d+)\},"completion_tokens_details":\{"reasoning_tokens":(\d+)\}`)

// tokens reads the usage that the client was told.
func (l *load) tokens(o *op, a stack.Answer) *limits.Tokens {
	m := usageSeen.FindSubmatch(a.Body)
	if m == nil {
		l.failed(o, a)
		return nil
	}
	var n [4]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(string(m[i+1]), 10, 64) // digits
	}
	return &limits.Tokens{Input: n[0] - n[2], CachedInput: n[2], Output: n[1] - n[3], Reasoning: n[3]}
}

// scriptOf has the provider answer as the call's name says: so many words, so
// slowly.
func scriptOf(c upstreamtest.Call) upstreamtest.Script {
	o, ok := parseOp(userOf(c))
	if !ok {
		return upstreamtest.Script{}
	}
	return upstreamtest.Script{
		Words: slices.Repeat([]string{"w "}, o.words), Delay: time.Duration(o.delay) * time.Millisecond, Pause: time.Duration(o.pause) * time.Millisecond,
		Usage: fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
			promptTokens, o.words, promptTokens+o.words, o.words%5, o.words%3),
	}
}

var userMember = regexp.MustCompile(`"user":\s?"([^"]*)"`)

func userOf(c upstreamtest.Call) string {
	m := userMember.FindSubmatch(c.Body)
	if m == nil {
		return ""
	}
	return string(m[1])
}
