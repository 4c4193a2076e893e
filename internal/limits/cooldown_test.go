package limits

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// at is a failure of a call that went out a moment before.
func failing(after time.Duration, status int, f Failure) Failure {
	f.At = noon.Add(after)
	if f.Sent.IsZero() {
		f.Sent = f.At.Add(-time.Millisecond)
	}
	f.Status = status
	return f
}

func TestEachFailureRestsItsKeyAsTheTableSays(t *testing.T) {
	los := "America/Los_Angeles"
	for _, c := range []struct {
		name   string
		f      Failure
		source BenchSource
		reason BenchReason
		lasts  time.Duration // -1: until a check passes; 0: no bench
	}{
		{"429, healthy daily counters", failing(0, 429, Failure{Daily: DailyLeft}), BenchHeuristic, BenchRateLimited, 90 * time.Second},
		{"429, nothing known", failing(0, 429, Failure{}), BenchHeuristic, BenchRateLimited, 90 * time.Second},
		{"429, known daily cap spent", failing(0, 429, Failure{Daily: DailySpent}), BenchHeuristic, BenchDayCapSpent, 2 * time.Minute},
		{"429 that says the day is spent, in the provider's zone", failing(0, 429, Failure{Message: MessageDaySpent, Zone: los, Wait: 26 * time.Second}), BenchAuthoritative, BenchDaySpent, 20 * time.Hour},
		{"429, shorter wait stated", failing(0, 429, Failure{Wait: time.Second, Daily: DailySpent}), BenchAuthoritative, BenchStated, time.Second},
		{"429, longer wait stated", failing(0, 429, Failure{Wait: 3 * time.Hour}), BenchAuthoritative, BenchStated, 3 * time.Hour},
		{"429, a wait beyond reason", failing(0, 429, Failure{Wait: 1000 * time.Hour}), BenchAuthoritative, BenchStated, 24 * time.Hour},
		{"429 of a spent balance", failing(0, 429, Failure{Message: MessageCredit, Wait: time.Second}), BenchCredit, BenchNoCredit, 24 * time.Hour},
		{"402", failing(0, 402, Failure{}), BenchCredit, BenchNoCredit, 24 * time.Hour},
		{"402 that passes", failing(0, 402, Failure{Wait: 4 * time.Second}), BenchAuthoritative, BenchStated, 4 * time.Second},
		{"403", failing(0, 403, Failure{}), BenchTier, BenchNotAllowed, 24 * time.Hour},
		{"401", failing(0, 401, Failure{}), BenchAuth, BenchRefused, -1},
		{"429 of a local upstream", failing(0, 429, Failure{Local: true, Daily: DailySpent}), BenchHeuristic, BenchRateLimited, 5 * time.Second},
		{"429 of a local upstream that states a wait", failing(0, 429, Failure{Local: true, Wait: 30 * time.Second}), BenchAuthoritative, BenchStated, 30 * time.Second},
		{"503 that states a wait", failing(0, 503, Failure{Wait: 7 * time.Second}), BenchAuthoritative, BenchStated, 7 * time.Second},
		{"500", failing(0, 500, Failure{}), "", "", 0},
		{"no answer", failing(0, 0, Failure{}), "", "", 0},
		{"a request that was wrong", failing(0, 400, Failure{}), "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Health{}.Failed(c.f).Bench
			if b.Source != c.source || b.Reason != c.reason {
				t.Fatalf("got %+v", b)
			}
			switch lasts := b.Until.Sub(noon); {
			case c.lasts < 0 && (!b.Until.IsZero() || !b.Runs(noon.AddDate(1, 0, 0))), c.lasts > 0 && lasts != c.lasts, c.lasts == 0 && b != Bench{}:
				t.Errorf("it lasts %s, want %s", lasts, c.lasts)
			}
			if at, ok := b.ProbeAt(); ok != (c.source == BenchHeuristic) || ok && at != noon.Add(c.lasts/2) {
				t.Errorf("probed at %s, %v", at, ok)
			}
		})
	}
}

// climb has incidents one after another, each right after the bench before.
func climb(f Failure, n int) (lasted []time.Duration) {
	var h Health
	at := time.Duration(0)
	for range n {
		h = h.Failed(failing(at, 429, f))
		lasted = append(lasted, h.Bench.Until.Sub(noon.Add(at)))
		at = h.Bench.Until.Sub(noon) + time.Second
	}
	return lasted
}

func TestTheLadderHasOneStepForEachIncident(t *testing.T) {
	for name, c := range map[string]struct {
		f    Failure
		want []time.Duration
	}{
		"a known daily cap is spent":  {Failure{Daily: DailySpent}, []time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 24 * time.Hour}},
		"no daily limit is known":     {Failure{}, []time.Duration{90 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}},
		"the daily counters are well": {Failure{Daily: DailyLeft}, []time.Duration{90 * time.Second, 90 * time.Second, 90 * time.Second}},
		"it is local":                 {Failure{Local: true, Daily: DailySpent}, []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range climb(c.f, len(c.want)) {
				if got != c.want[i] {
					t.Errorf("incident %d lasts %s, want %s", i+1, got, c.want[i])
				}
			}
		})
	}
}

func TestStepsAreForgottenAfterADayAndASecondFailureAfterAnHour(t *testing.T) {
	spent := Failure{Daily: DailySpent}
	h := Health{}.Failed(failing(0, 429, spent)).Failed(failing(5*time.Minute, 429, spent))
	if h.Step != 2 {
		t.Fatalf("step %d", h.Step)
	}
	if got := h.Failed(failing(40*time.Hour, 429, spent)); got.Step != 1 {
		t.Errorf("a day after its bench the next incident is step %d", got.Step)
	}
	once := Health{}.Failed(failing(0, 429, Failure{}))
	if got := once.Failed(failing(59*time.Minute, 429, Failure{})); got.Bench.Until.Sub(got.Bench.Since) != 2*time.Minute {
		t.Errorf("59 minutes later: %+v", got)
	}
	if got := once.Failed(failing(time.Hour, 429, Failure{})); got.Bench.Until.Sub(got.Bench.Since) != 90*time.Second || got.Step != 0 {
		t.Errorf("an hour later: %+v", got)
	}
}

func TestASecondStatedWaitExtendsAndNeverShortens(t *testing.T) {
	h := Health{}.Failed(failing(0, 429, Failure{Wait: time.Second}))
	h = h.Failed(failing(500*time.Millisecond, 429, Failure{Wait: time.Minute}))
	if end := h.Bench.Until.Sub(noon); end != 60500*time.Millisecond {
		t.Errorf("it ends after %s", end)
	}
	h = h.Failed(failing(time.Second, 429, Failure{Wait: time.Second}))
	if end := h.Bench.Until.Sub(noon); end != 60500*time.Millisecond {
		t.Errorf("a shorter wait ends it after %s", end)
	}
}

func TestAFailedProbeArmsTheSameBenchAgain(t *testing.T) {
	h := Health{}.Failed(failing(0, 429, Failure{Daily: DailySpent}))
	h = h.Failed(failing(time.Minute, 429, Failure{Daily: DailySpent, Probe: true}))
	if h.Step != 1 || h.Bench.Until.Sub(noon) != 3*time.Minute {
		t.Errorf("got %+v", h)
	}
}

func TestWhatWasSentBeforeAFailureProvesNothing(t *testing.T) {
	h := Health{}.Failed(failing(time.Minute, 429, Failure{}))
	if got := h.Served(noon, noon.Add(61*time.Second)); got != h {
		t.Errorf("got %+v", got)
	}
	if got := h.Served(noon.Add(61*time.Second), noon.Add(62*time.Second)); got != (Health{}) {
		t.Errorf("a success leaves %+v", got)
	}
}

func TestThreeFailuresOfAModelRestItAndOneBurstIsOne(t *testing.T) {
	var s Streak
	var full bool
	burst := Failure{Sent: noon.Add(-time.Second)}
	for range 5 {
		if s, full = s.Failed(failing(0, 500, burst)); full || len(s) != 1 {
			t.Fatalf("a burst counts as %d, %v", len(s), full)
		}
	}
	s, _ = s.Failed(failing(time.Minute, 0, Failure{}))
	if _, full = s.Failed(failing(16*time.Minute, 500, Failure{})); full {
		t.Error("the first is older than 15 minutes, and counts")
	}
	if _, full = s.Failed(failing(14*time.Minute, 500, Failure{})); !full {
		t.Error("the third does not rest the model")
	}
	if got := s.Served(noon.Add(2 * time.Minute)); len(got) != 0 {
		t.Error("a success leaves a streak")
	}
	h := Health{Step: 2}.Rest(noon, false, 500)
	if h.Bench.Until.Sub(noon) != 10*time.Minute || h.Step != 2 {
		t.Errorf("got %+v", h)
	}
}

// drawFailures draws failures in the order in which they are known.
func drawFailures(t *rapid.T) []Failure {
	at := noon
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Failure {
		at = at.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "later")))
		return Failure{
			Sent: at.Add(-time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "took"))), At: at,
			Status:  rapid.SampledFrom([]int{0, 401, 402, 403, 429, 429, 429, 500, 503}).Draw(t, "status"),
			Wait:    time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1e9, 3e12, 1e15}).Draw(t, "wait")),
			Daily:   Daily(rapid.IntRange(0, 2).Draw(t, "daily")),
			Message: Message(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "message")),
			Local:   rapid.Bool().Draw(t, "local"), Probe: rapid.IntRange(0, 9).Draw(t, "probe") == 0,
			Zone: rapid.SampledFrom([]string{"", "America/Los_Angeles", "nowhere"}).Draw(t, "zone"),
		}
	}), 1, 40).Draw(t, "failures")
}

func TestWhateverFailsABenchIsNeverShortenedAndABurstIsOneStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Health
		for _, f := range drawFailures(t) {
			was := h
			h = h.Failed(f)
			if was.Bench.Runs(f.At) && !was.Bench.Until.IsZero() && !h.Bench.Until.IsZero() && h.Bench.Until.Before(was.Bench.Until) {
				t.Fatalf("%+v shortens %+v to %+v", f, was, h)
			}
			if was.Bench.Runs(f.At) && was.Bench.Until.IsZero() && h.Bench != was.Bench {
				t.Fatalf("%+v ends %+v", f, was)
			}
			if !h.Bench.Until.IsZero() && h.Bench.Until.Sub(f.At) > 25*time.Hour && h.Bench != was.Bench {
				t.Fatalf("%+v rests it until %s", f, h.Bench.Until)
			}
			if h.Step > was.Step+1 || h.Step > 4 || h.Step < 0 {
				t.Fatalf("from step %d to %d", was.Step, h.Step)
			}
			if h.Step > was.Step && (f.Status != 429 || f.Local || f.Wait > 0 || f.Message != MessageNone || f.Daily == DailyLeft) {
				t.Fatalf("%+v climbs", f)
			}
			again := f
			again.Probe = false
			if h.Failed(again).Step > max(h.Step, 1) {
				t.Fatalf("the second of one burst climbs: %+v", h)
			}
			if f.Local && h.Bench != was.Bench && h.Bench.Source == BenchHeuristic && h.Bench.Until.Sub(f.At) > benchLocal && !was.Bench.Runs(f.At) {
				t.Fatalf("a local upstream rests %+v", h.Bench)
			}
		}
		end := h.Last.Add(1)
		if got := h.Served(end, end.Add(time.Second)); got.Step != 0 || !got.Limited.IsZero() {
			t.Fatalf("a success leaves %+v", got)
		}
	})
}

func TestOurOwnChecksBackOff(t *testing.T) {
	for _, source := range []BenchSource{BenchAuth, BenchCredit, BenchTier} {
		last := time.Duration(-1)
		for n := range 5 {
			wait, ok := CheckAfter(source, n)
			if !ok || wait <= last {
				t.Errorf("%s: check %d after %s, the one before after %s", source, n, wait, last)
			}
			last = wait
		}
	}
	if _, ok := CheckAfter(BenchHeuristic, 0); ok {
		t.Error("a heuristic bench is checked")
	}
}
