package limitstest

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
)

// Vectors is the file of worked cases of the dual bucket.
type Vectors struct {
	Vectors []struct {
		Name     string `json:"name"`
		RPM, TPM int64
		Steps    []Step `json:"steps"`
	} `json:"vectors"`
}

// Step is one operation and the state after it: balances in permits, carries in
// 1/60000 of one, times in ms; a wait of -1 is never.
type Step struct {
	Key       string `json:"key"`
	Op        string `json:"op"`
	Cost      int64  `json:"cost"`
	Now       int64  `json:"now"`
	OK        *bool  `json:"ok"`
	Req       int64  `json:"req"`
	ReqCredit int64  `json:"req_credit"`
	Tok       int64  `json:"tok"`
	TokCredit int64  `json:"tok_credit"`
	Last      *int64 `json:"last"`
	Wait      int64  `json:"wait_for_cost"`
}

// ReadVectors reads the worked cases.
func ReadVectors(t testing.TB, path string) Vectors {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v Vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Vectors) == 0 {
		t.Fatalf("no vectors in %s", path)
	}
	return v
}

func replay(t *testing.T, open Open, path string) {
	for _, v := range ReadVectors(t, path).Vectors {
		t.Run(v.Name, func(t *testing.T) {
			b := newBench(t, open)
			for i, s := range v.Steps {
				b.clock.Set(Noon.Add(time.Duration(s.Now) * time.Millisecond))
				b.step(t, i, s, v.RPM, v.TPM)
			}
		})
	}
}

func (b *bench) step(t *testing.T, i int, s Step, rpm, tpm int64) {
	b.customer[15] = s.Key[0]
	plan := b.perMinute(rpm, tpm)
	if s.Op == "allow" {
		if d := b.ask(limits.Request{ID: id.New(), Plan: of(plan), Estimate: tokens(s.Cost)}); d.Admitted != *s.OK {
			t.Fatalf("step %d: admitted %v, want %v", i, d.Admitted, *s.OK)
		}
	}
	live := b.live(plan...)
	if live[0].Remaining != s.Req || live[1].Remaining != s.Tok {
		t.Fatalf("step %d: %d requests and %d tokens left, want %d and %d", i, live[0].Remaining, live[1].Remaining, s.Req, s.Tok)
	}
	d := b.ask(limits.Request{Plan: of(plan), Estimate: tokens(s.Cost), DryRun: true})
	if wait := d.RetryAfter.Milliseconds(); d.TooLarge != (s.Wait < 0) || wait != max(s.Wait, 0) || d.Admitted != (s.Wait == 0) {
		t.Fatalf("step %d: the next call waits %d ms, never %v; want %d", i, wait, d.TooLarge, s.Wait)
	}
}
