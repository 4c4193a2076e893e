package gateway_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

var guessed = upstreamtest.Script{Status: 429, Body: `{"error":{"message":"Slow down","type":"x","code":null}}`}

func TestAKeyThatCoolsByAGuessIsTriedNowAndThen(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("where it is the only one, by one call a second", func(t *testing.T) { onlyKey(t, s) })
	t.Run("never while the provider said how long", func(t *testing.T) { statedKey(t, s) })
	t.Run("once half is over, where another has said so", func(t *testing.T) { halfOver(t, s) })
	t.Run("by a call that may wait too", func(t *testing.T) { mayWait(t, s) })
	t.Run("not while another is well", func(t *testing.T) { anotherIsWell(t, s) })
}

// rests makes the bench of a key end in an hour, and have begun so long before.
func rests(t *testing.T, s *stack.Stack, w stack.World, key string, ago time.Duration) {
	t.Helper()
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	pvk, err := id.ProviderKey.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if got := stack.Rows[string](t, s, `update provider_health set since = $3, until = $4, version = version + 100
		where tenant_id = $1 and provider_key_id = $2 returning model`, tenant.String(), pvk.String(), now.Add(-ago), now.Add(time.Hour)); len(got) != 1 {
		t.Fatalf("%d benches", len(got))
	}
}

// crowd sends calls until enough of them were refused, and tells how many passed.
func crowd(t *testing.T, s *stack.Stack, w stack.World, enough int) (passed int) {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range 8 {
		group.Go(func() {
			for {
				a := s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false))
				mu.Lock()
				if a.Status == http.StatusOK {
					passed++
				} else {
					refused++
				}
				over := refused >= enough || passed > 0
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	group.Wait()
	return passed
}

func plenty(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) stack.World {
	t.Helper()
	return s.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1_000_000}}})
}

func chats(up *upstreamtest.Upstream) (n int) {
	for _, c := range up.Calls() {
		if c.Method == http.MethodPost {
			n++
		}
	}
	return n
}

func onlyKey(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := plenty(t, s, up)
	up.Choose(func(upstreamtest.Call) upstreamtest.Script { return guessed })
	begun := time.Now()
	capacity(t, ask(t, s, w), 1, 5)
	rests(t, s, w, w.ProviderKey, 0)
	crowd(t, s, w, 300)
	stack.Eventually(t, 20*time.Second, func() string {
		ask(t, s, w)
		if n := chats(up); n < 3 {
			return fmt.Sprintf("%d calls arrived", n)
		}
		return ""
	})
	if n, most := chats(up), 1+int(time.Since(begun)/time.Second); n > most {
		t.Errorf("%d calls arrived in %s", n, time.Since(begun))
	}
	if list := cooldowns(t, s, w, w.ProviderKey); len(list) != 1 {
		t.Errorf("it has %v", list)
	}
	up.Choose(func(upstreamtest.Call) upstreamtest.Script { return upstreamtest.Script{} })
	stack.Eventually(t, 20*time.Second, func() string { // an hour early
		if a := ask(t, s, w); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	if list := cooldowns(t, s, w, w.ProviderKey); len(list) != 0 {
		t.Errorf("a success left %v", list)
	}
}

func mayWait(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := plenty(t, s, up)
	up.Next(guessed)
	capacity(t, ask(t, s, w), 1, 5)
	rests(t, s, w, w.ProviderKey, 0)
	stack.Eventually(t, 20*time.Second, func() string { // an hour early
		a := <-patient(t.Context(), t, s, w.Key, "one", "100")
		if a.Status != 200 && chats(up) > 1 {
			t.Errorf("it was called, and the client got %s", a)
		}
		if a.Status == 502 {
			t.Errorf("the trial was turned away: %s", a)
		}
		if a.Status != 200 {
			return a.String()
		}
		return ""
	})
}

func statedKey(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := plenty(t, s, up)
	up.Next(limited("600"))
	capacity(t, ask(t, s, w), 599, 600)
	rests(t, s, w, w.ProviderKey, time.Hour) // more than half of it is over
	if n := crowd(t, s, w, 400); n > 0 || chats(up) != 1 {
		t.Errorf("%d passed, %d calls arrived", n, chats(up))
	}
}

func halfOver(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up, second := upstreamtest.New(t), upstreamtest.New(t)
	w := plenty(t, s, up)
	addProvider(t, s, w, "second", second)
	up.Next(guessed, guessed)
	second.Next(limited("900"))
	capacity(t, ask(t, s, w), 1, 900) // one rests, and the other
	rests(t, s, w, w.ProviderKey, time.Minute)
	if n := crowd(t, s, w, 400); n > 0 || chats(up) != 1 || chats(second) != 1 {
		t.Errorf("before half was over %d passed, %d and %d calls arrived", n, chats(up), chats(second))
	}
	rests(t, s, w, w.ProviderKey, 2*time.Hour)
	stack.Eventually(t, 20*time.Second, func() string {
		ask(t, s, w)
		if n := chats(up); n != 2 {
			return fmt.Sprintf("%d calls arrived", n)
		}
		return ""
	})
	if crowd(t, s, w, 200); chats(up) != 2 || chats(second) != 1 {
		t.Errorf("after its probe failed it was called %d times, and the one that said how long %d", chats(up), chats(second))
	}
}

func anotherIsWell(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up, second := upstreamtest.New(t), upstreamtest.New(t)
	w := plenty(t, s, up)
	addProvider(t, s, w, "second", second)
	up.Next(guessed)
	stack.Eventually(t, 20*time.Second, func() string {
		if a := ask(t, s, w); a.Status != 200 {
			t.Errorf("got %s", a)
		}
		if chats(up) == 0 {
			return "it was not called"
		}
		return ""
	})
	rests(t, s, w, w.ProviderKey, 2*time.Hour)
	stack.Eventually(t, 20*time.Second, func() string {
		if a := ask(t, s, w); a.Status != 200 {
			t.Errorf("got %s", a)
		}
		if n := chats(second); n < 30 {
			return fmt.Sprintf("the other was called %d times", n)
		}
		return ""
	})
	if n := chats(up); n != 1 {
		t.Errorf("%d calls tried the one that cools", n)
	}
}
