package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// ceilings are what a body says of the output.
type ceilings struct {
	MaxTokens     *int64 `json:"max_tokens"`
	MaxCompletion *int64 `json:"max_completion_tokens"`
	MaxOutput     *int64 `json:"max_output_tokens"`
}

func ceilingsIn(t *testing.T, body []byte) (list []int64, c ceilings) {
	t.Helper()
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*int64{c.MaxTokens, c.MaxCompletion, c.MaxOutput} {
		if n != nil {
			list = append(list, *n)
		}
	}
	return list, c
}

// unstated is a call that states no ceiling, and how many answers it asks for.
type unstated struct {
	provider, path, body string
	answers              int64
	translated           bool // to Anthropic's form, which demands a ceiling
}

var unstateds = map[string]unstated{
	"chat":                         {"custom", "chat/completions", `{"model": "test-small", "messages": [{"role": "user", "content": "Hi"}]}`, 1, false},
	"a stream of chat":             {"custom", "chat/completions", `{"model": "test-small", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}`, 1, false},
	"three choices":                {"custom", "chat/completions", `{"model": "test-small", "n": 3, "max_tokens": null, "messages": [{"role": "user", "content": "Hi"}]}`, 3, false},
	"the best of four, of prompts": {"custom", "completions", `{"model": "test-small", "best_of": 4, "prompt": ["Hi", "Ho"]}`, 8, false},
	"a response":                   {"custom", "responses", `{"model": "test-small", "input": "Hi"}`, 1, false},
	"messages":                     {"custom-anthropic", "messages", `{"model": "test-small", "messages": [{"role": "user", "content": "Hi"}]}`, 1, false},
	"messages as chat":             {"custom", "messages", `{"model": "test-small", "messages": [{"role": "user", "content": "Hi"}]}`, 1, false},
	"chat as messages":             {"custom-anthropic", "chat/completions", `{"model": "test-small", "messages": [{"role": "user", "content": "Hi"}]}`, 1, true},
}

// TestAPlanThatCapsAnswersStatesWhatItReserves: the provider is told exactly
// what is reserved for each answer, so that none takes more, whatever provider
// and form. A plan that does not cap states nothing.
func TestAPlanThatCapsAnswersStatesWhatItReserves(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for name, c := range unstateds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.capped(t, s)
			c.open(t, s)
		})
	}
	t.Run("small plans", func(t *testing.T) { smallPlans(t, s) })
	t.Run("a call that states a ceiling keeps it", func(t *testing.T) { keepsItsOwn(t, s) })
}

func (c unstated) on(t *testing.T, s *stack.Stack, tokens int64, caps bool) (stack.World, *upstreamtest.Upstream) {
	t.Helper()
	up := upstreamtest.New(t)
	return s.Setup(t, stack.Options{Upstream: up, Provider: c.provider, CapOutput: caps, Plan: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: tokens}}}), up
}

// capped makes a call whose provider writes as much as it may.
func (c unstated) capped(t *testing.T, s *stack.Stack) {
	t.Helper()
	w, up := c.on(t, s, 2002, true)
	up.Choose(func(got upstreamtest.Call) upstreamtest.Script {
		var most int64
		if list, _ := ceilingsIn(t, got.Body); len(list) == 1 {
			most = list[0]
		}
		return upstreamtest.Script{Used: &mimic.Counts{Input: 1, Output: int(most * c.answers)}}
	})
	s.Want(t, 200, "POST", "/v1/"+c.path, w.Key, c.body)
	list, _ := ceilingsIn(t, up.Last().Body)
	e := cappedEvent(t, s, w)
	if len(list) != 1 || list[0] < 1 || list[0]*c.answers != e.Reserved {
		t.Errorf("the provider was told %v for each of %d answers, %d are reserved: %s", list, c.answers, e.Reserved, up.Last().Body)
	}
	if e.Reserved > 500 || e.Reserved <= 500-c.answers {
		t.Errorf("%d are reserved, where a quarter of the limit is 500", e.Reserved)
	}
	if e.Output != e.Reserved {
		t.Errorf("%d were taken of %d", e.Output, e.Reserved)
	}
}

func (c unstated) open(t *testing.T, s *stack.Stack) {
	t.Helper()
	w, up := c.on(t, s, 2002, false)
	s.Want(t, 200, "POST", "/v1/"+c.path, w.Key, c.body)
	list, got := ceilingsIn(t, up.Last().Body)
	if c.translated {
		if len(list) != 1 || list[0] != 4096 {
			t.Errorf("the provider was told %v", list)
		}
		return
	}
	for _, n := range []*int64{got.MaxCompletion, got.MaxOutput, got.MaxTokens} {
		if n != nil {
			t.Errorf("the provider was told %d: %s", *n, up.Last().Body)
		}
	}
}

type cappedRow struct{ Reserved, Output int64 }

// cappedEvent waits for a tenant's only event.
func cappedEvent(t *testing.T, s *stack.Stack, w stack.World) (e cappedRow) {
	t.Helper()
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		list := stack.Rows[cappedRow](t, s, `
			select (detail #>> '{estimate,tokens,output_tokens}')::bigint, output_tokens
			from usage_events where tenant_id = $1`, tenant.String())
		if len(list) != 1 {
			return fmt.Sprintf("%d events", len(list))
		}
		e = list[0]
		return ""
	})
	return e
}

// smallPlans: where a limit leaves next to nothing, the ceiling is the least
// that a provider takes.
func smallPlans(t *testing.T, s *stack.Stack) {
	t.Parallel()
	for name, least := range map[string]int64{"chat": 1, "a response": 16} {
		w, up := unstateds[name].on(t, s, 40, true)
		s.Want(t, 200, "POST", "/v1/"+unstateds[name].path, w.Key, unstateds[name].body)
		list, _ := ceilingsIn(t, up.Last().Body)
		if len(list) != 1 || list[0] < least || list[0] > 16 {
			t.Errorf("%s: the provider was told %v", name, list)
		}
	}
}

func keepsItsOwn(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, up := unstateds["chat"].on(t, s, 1_000_000, true)
	s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, `{"model": "test-small", "max_completion_tokens": 77, "messages": [{"role": "user", "content": "Hi"}]}`)
	_, got := ceilingsIn(t, up.Last().Body)
	if got.MaxTokens != nil || got.MaxCompletion == nil || *got.MaxCompletion != 77 {
		t.Errorf("the provider was told %s", up.Last().Body)
	}
}

// TestACeilingDoesNotShrinkToWhatAnswersUsuallyTake: short answers would make the
// ceiling short, and then longer ones would be cut and never be learned of.
func TestACeilingDoesNotShrinkToWhatAnswersUsuallyTake(t *testing.T) {
	t.Parallel()
	s := rig(t)
	w, up := unstateds["chat"].on(t, s, 1_000_000_000, true)
	call := fmt.Sprintf(`{"model": "test-small", "messages": [{"role": "user", "content": %q}]}`, question)
	used := mimic.Counts{Input: 60, Output: 6}
	up.Choose(func(upstreamtest.Call) upstreamtest.Script { return upstreamtest.Script{Used: &used} })
	s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, call)
	first, _ := ceilingsIn(t, up.Last().Body)
	stack.Eventually(t, 60*time.Second, func() string {
		s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, call)
		list := reservedOf(t, s, w)
		if len(list) == 0 || list[0].Input == list[0].Guess {
			return "nothing is learned yet"
		}
		return ""
	})
	if now, _ := ceilingsIn(t, up.Last().Body); len(first) != 1 || len(now) != 1 || now[0] != first[0] {
		t.Errorf("the ceiling went from %v to %v", first, now)
	}
}

// TestWhatIsHeldIsWhatAnyOfTheProvidersMayWrite, and none is told to write more
// than its model can.
func TestWhatIsHeldIsWhatAnyOfTheProvidersMayWrite(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for name, caps := range map[string]bool{"stated": false, "given": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := s.Setup(t, stack.Options{Upstream: up, CapOutput: caps, Plan: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 10_000_000}}})
			s.Want(t, 200, "POST", "/api/v1/catalogue/models", w.ManagementKey, `{"csv": "provider,model,context,max_output,default_output,input,tools,valid_from,source\ncustom,test-small,131072,100,,text,true,2020-11-01,ours\ncustom,test-large,131072,5000,5000,text,true,2020-11-01,ours\n", "dry_run": false}`)
			models := []string{"test-small", "test-large"}
			if caps {
				models = []string{"test-large", "test-small"}
			}
			s.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(
				`{"name": "front", "candidates": [{"model": %q, "provider_key": %q, "priority": 1, "weight": 1}, {"model": %q, "provider_key": %q, "priority": 2, "weight": 1}]}`, models[0], w.ProviderKey, models[1], w.ProviderKey))
			up.Choose(func(c upstreamtest.Call) upstreamtest.Script {
				if strings.Contains(string(c.Body), models[0]) {
					return upstreamtest.Failed(403)
				}
				return upstreamtest.Script{}
			})
			call := `{"model": "front", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}]}`
			if caps {
				call = `{"model": "front", "messages": [{"role": "user", "content": "Hi"}]}`
			}
			stack.Eventually(t, 10*time.Second, func() string {
				if a := s.Call(t, "POST", "/v1/chat/completions", w.Key, call); a.Status != 200 {
					return a.String()
				}
				return ""
			})
			list, _ := ceilingsIn(t, up.Last().Body)
			if e := cappedEvent(t, s, w); e.Reserved != 5000 || caps && (len(list) != 1 || list[0] != 100) {
				t.Errorf("%d are reserved, and the provider that serves was told %v", e.Reserved, list)
			}
		})
	}
}
