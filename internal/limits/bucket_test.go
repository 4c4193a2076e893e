package limits

import (
	"encoding/json"
	"os"
	"testing"

	"pgregory.net/rapid"
)

func newBucket(rate, ceiling int64) *bucket {
	return &bucket{rate: rate, ceiling: ceiling, level: ceiling * grain}
}

// none are the histories of buckets that nobody settles against.
var none *rooms

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
			requests := int64(0)
			req.refill(s.Now, none)
			tok.refill(s.Now, none)
			if s.Op == "allow" {
				requests = 1
				passes := req.wait(1, 0) == 0 && tok.wait(s.Cost, 0) == 0
				if passes {
					req.spend(1, none)
					tok.spend(s.Cost, none)
				}
				if passes != *s.OK {
					t.Fatalf("%s, step %d: passes %v", v.Name, i, passes)
				}
			}
			if s.Op == "allow" {
				requests = 1
			}
			wait := int64(-1)
			if w := max(req.wait(max(requests, 1), 0), tok.wait(s.Cost, 0)); w != never {
				wait = w
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

func TestManySmallRefillsGiveExactlyOneLongOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(1, 100_000), rapid.SampledFrom([]int64{1, 1 << 31, maxBucket})).Draw(t, "rate")
		ceiling := min(rate+rapid.Int64Range(0, 5*rate).Draw(t, "burst"), maxBucket)
		small, long := newBucket(rate, ceiling), newBucket(rate, ceiling)
		taken := rapid.Int64Range(0, 2*ceiling).Draw(t, "taken")
		small.spend(taken, none)
		long.spend(taken, none)
		var now int64
		for range rapid.IntRange(0, 50).Draw(t, "looks") {
			now += rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 100_000)).Draw(t, "ms")
			small.refill(now, none)
		}
		long.refill(now, none)
		if small.level != long.level {
			t.Fatalf("%d and %d", small.level, long.level)
		}
		long.refill(now+1<<52, none)
		if long.level != long.full() {
			t.Fatalf("not full after ages: %d of %d", long.level, long.full())
		}
	})
}

func TestTheClampForgetsNoBurstAndNoDebt(t *testing.T) {
	b := newBucket(100, 1000)
	b.spend(2000, none) // debt of one ceiling: 20 minutes to full
	for _, s := range []struct{ at, balance int64 }{{60_000, -900}, {600_000, 0}, {1_199_999, 999}, {1_200_000, 1000}, {9_000_000, 1000}} {
		if b.refill(s.at, none); b.balance() != s.balance {
			t.Errorf("at %d ms: %d, want %d", s.at, b.balance(), s.balance)
		}
	}
}

// told is the level that the bucket would hold had every settled call been
// charged its actual cost from the start.
func told(b *bucket, charges [][2]int64, now int64) int64 {
	r := newBucket(b.rate, b.ceiling)
	for _, c := range charges {
		r.refill(c[0], none)
		r.level -= c[1] * grain
	}
	r.refill(now, none)
	return r.level
}

func TestMergedHistoriesGiveBackLessNeverMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBucket(rapid.Int64Range(1, 500).Draw(t, "rate"), rapid.SampledFrom([]int64{500, 10_000}).Draw(t, "ceiling"))
		pace := rapid.SampledFrom([]int64{20, 500, 5_000}).Draw(t, "pace")
		var charges [][2]int64
		var open []*hold
		var which []int
		var now int64
		in := new(rooms)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, pace).Draw(t, "ms")
			b.refill(now, in)
			if n := len(open); n > 0 && rapid.IntRange(0, 3).Draw(t, "settle") == 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				actual := rapid.Int64Range(0, open[i].amount.n).Draw(t, "actual")
				b.settle(open[i], actual, now, in)
				charges[which[i]][1] = actual
				open, which = append(open[:i], open[i+1:]...), append(which[:i], which[i+1:]...)
			} else if cost := rapid.Int64Range(0, 100).Draw(t, "cost"); b.wait(cost, 0) == 0 {
				h := &hold{amount: sum{n: cost}, open: true}
				b.charge(h, in)
				charges, open, which = append(charges, [2]int64{now, cost}), append(open, h), append(which, len(charges))
			}
			if exact := told(b, charges, now); b.level > exact {
				t.Fatalf("the level is %d, had the calls cost what they did it would be %d", b.level, exact)
			}
			if b.used > maxRooms {
				t.Fatalf("%d rooms", b.used)
			}
		}
	})
}

func TestABurstOfManyCallsGetsNearlyAllOfItsUnusedTokensBack(t *testing.T) {
	b := newBucket(200_000, 200_000)
	in := new(rooms)
	var charges [][2]int64
	var open []*hold
	for i := range int64(150) {
		b.refill(i*10, in)
		h := &hold{amount: sum{n: 1000}, open: true}
		b.charge(h, in)
		charges, open = append(charges, [2]int64{i * 10, 300}), append(open, h)
	}
	b.refill(10_000, in)
	before := b.level
	for i, h := range open {
		b.settle(h, 300, 10_000+int64(i), in)
	}
	now := int64(10_000 + len(open))
	b.refill(now, in)
	exact := told(b, charges, now)
	if b.level > exact || (exact-b.level)*10 > exact-before {
		t.Fatalf("gave back %d grains of %d", b.level-before, exact-before)
	}
	if b.used != 0 || b.more != 0 || b.held != 0 {
		t.Fatalf("left over: %d rooms, %d held", b.used, b.held)
	}
}
