package limits

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func ms(n int64) instant { return instant{wall: time.UnixMilli(n), wallMS: n, ms: n} }

func newBucket(rate, ceiling int64) *bucket {
	return &bucket{rate: rate, ceiling: ceiling, level: ceiling * grain}
}

func (b *bucket) carry() int64 { return b.level - b.balance()*grain }

// The conformance suite sees balances and waits; carries and timestamps are
// checked here.
func TestTheWorkedCasesHoldDownToTheCarry(t *testing.T) {
	raw, err := os.ReadFile("testdata/dual_bucket_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Name     string
			RPM, TPM int64
			Steps    []struct {
				Op        string
				Cost, Now int64
				OK        *bool
				Req, Tok  int64
				ReqCarry  int64  `json:"req_credit"`
				TokCarry  int64  `json:"tok_credit"`
				Last      *int64 `json:"last"`
				Wait      int64  `json:"wait_for_cost"`
			}
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		req, tok := newBucket(v.RPM, v.RPM), newBucket(v.TPM, v.TPM)
		for i, s := range v.Steps {
			at, requests := ms(s.Now), int64(0)
			req.refill(at.ms)
			tok.refill(at.ms)
			if s.Op == "allow" {
				requests = 1
				passes := fits(req, 1, at) && fits(tok, s.Cost, at)
				if passes {
					req.spend(1)
					tok.spend(s.Cost)
				}
				if passes != *s.OK {
					t.Fatalf("%s, step %d: passes %v", v.Name, i, passes)
				}
			}
			if s.Op == "allow" {
				requests = 1
			}
			wait := int64(-1)
			a, everA := req.wait(max(requests, 1), at)
			b, everB := tok.wait(s.Cost, at)
			if s.Op == "peek" {
				a, everA = req.wait(1, at)
			}
			if everA && everB {
				wait = max(a, b).Milliseconds()
			}
			if req.balance() != s.Req || req.carry() != s.ReqCarry || tok.balance() != s.Tok || tok.carry() != s.TokCarry || wait != s.Wait {
				t.Fatalf("%s, step %d: %d+%d, %d+%d, wait %d; want %+v", v.Name, i, req.balance(), req.carry(), tok.balance(), tok.carry(), wait, s)
			}
			if s.Last != nil && req.last != *s.Last {
				t.Fatalf("%s, step %d: last is %d, want %d", v.Name, i, req.last, *s.Last)
			}
		}
	}
}

func fits(b *bucket, cost int64, at instant) bool {
	wait, ever := b.wait(cost, at)
	return ever && wait == 0
}

func TestManySmallRefillsGiveExactlyOneLongOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(1, 100_000), rapid.SampledFrom([]int64{1, 1 << 31, maxBucket})).Draw(t, "rate")
		ceiling := min(rate+rapid.Int64Range(0, 5*rate).Draw(t, "burst"), maxBucket)
		small, long := newBucket(rate, ceiling), newBucket(rate, ceiling)
		taken := rapid.Int64Range(0, 2*ceiling).Draw(t, "taken")
		small.spend(taken)
		long.spend(taken)
		var now int64
		for range rapid.IntRange(0, 50).Draw(t, "looks") {
			now += rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 100_000)).Draw(t, "ms")
			small.refill(now)
		}
		long.refill(now)
		if small.level != long.level {
			t.Fatalf("%d and %d", small.level, long.level)
		}
		long.refill(now + 1<<52)
		if long.level != long.full() {
			t.Fatalf("not full after ages: %d of %d", long.level, long.full())
		}
	})
}

func TestTheClampForgetsNoBurstAndNoDebt(t *testing.T) {
	b := newBucket(100, 1000)
	b.spend(2000) // debt of one ceiling: 20 minutes to full
	for _, s := range []struct{ at, balance int64 }{{60_000, -900}, {600_000, 0}, {1_199_999, 999}, {1_200_000, 1000}, {9_000_000, 1000}} {
		if b.refill(s.at); b.balance() != s.balance {
			t.Errorf("at %d ms: %d, want %d", s.at, b.balance(), s.balance)
		}
	}
}

// told is the level that the bucket would hold had every settled call been
// charged its actual cost from the start.
func told(b *bucket, charges [][2]int64, now int64) int64 {
	r := newBucket(b.rate, b.ceiling)
	for _, c := range charges {
		r.refill(c[0])
		r.level -= c[1] * grain
	}
	r.refill(now)
	return r.level
}

func TestMergedHistoriesGiveBackLessNeverMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBucket(rapid.Int64Range(1, 500).Draw(t, "rate"), rapid.SampledFrom([]int64{500, 10_000}).Draw(t, "ceiling"))
		pace := rapid.SampledFrom([]int64{20, 500, 5_000}).Draw(t, "pace")
		var charges [][2]int64
		var open []*hold
		var now int64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, pace).Draw(t, "ms")
			b.refill(now)
			if n := len(open); n > 0 && rapid.IntRange(0, 3).Draw(t, "settle") == 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				actual := rapid.Int64Range(0, open[i].amount).Draw(t, "actual")
				b.settle(open[i], actual, ms(now))
				charges[open[i].window.start][1] = actual
				open = append(open[:i], open[i+1:]...)
			} else if cost := rapid.Int64Range(0, 100).Draw(t, "cost"); fits(b, cost, ms(now)) {
				h := &hold{amount: cost, open: true, window: window{start: int64(len(charges))}}
				b.charge(h, ms(now))
				charges, open = append(charges, [2]int64{now, cost}), append(open, h)
			}
			if exact := told(b, charges, now); b.level > exact {
				t.Fatalf("the level is %d, had the calls cost what they did it would be %d", b.level, exact)
			}
			if len(b.rooms) > maxRooms {
				t.Fatalf("%d rooms", len(b.rooms))
			}
		}
	})
}

func TestABurstOfManyCallsGetsNearlyAllOfItsUnusedTokensBack(t *testing.T) {
	b := newBucket(200_000, 200_000)
	var charges [][2]int64
	var open []*hold
	for i := range int64(150) {
		b.refill(i * 10)
		h := &hold{amount: 1000, open: true}
		b.charge(h, ms(i*10))
		charges, open = append(charges, [2]int64{i * 10, 300}), append(open, h)
	}
	b.refill(10_000)
	before := b.level
	for i, h := range open {
		b.settle(h, 300, ms(10_000+int64(i)))
	}
	now := int64(10_000 + len(open))
	b.refill(now)
	exact := told(b, charges, now)
	if b.level > exact || (exact-b.level)*10 > exact-before {
		t.Fatalf("gave back %d grains of %d", b.level-before, exact-before)
	}
	if b.rooms != nil || b.held != 0 {
		t.Fatalf("left over: %v, %d held", b.rooms, b.held)
	}
}
