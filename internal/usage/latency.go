package usage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Latency counts calls by how long they took, from their admission to their end:
// those that reached a provider and whose end was told, which is every admitted
// call but an expired one, and but an import that states no duration. It is as
// long as its last bucket that holds a call. Histograms add up exactly, in any
// order.
type Latency []int64

// preferred is the series R10 of ISO 3, ten steps of at most 28% to a decade.
var preferred = [...]time.Duration{1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300, 8000}

// latencyBounds are where the buckets after the first begin: from 10 ms to 630 s.
// The migration that made usage_latency has the same ones.
var latencyBounds = func() (bounds []time.Duration) {
	for unit := 10 * time.Microsecond; unit < time.Second; unit *= 10 {
		for _, n := range preferred {
			bounds = append(bounds, n*unit)
		}
	}
	return bounds[:slices.Index(bounds, 630*time.Second)+1]
}()

// latencyDigits are how many decimal digits of a number in the database each
// bucket has.
const latencyDigits = 16

// latencyOf is the same of an event, as SQL.
const latencyOf = "usage_latency(outcome, requests, ended_at - started_at)"

// measured is the bucket of a call, if it has one.
func (e *Event) measured() (bucket int, ok bool) {
	took := e.EndedAt.Sub(e.StartedAt)
	switch e.Outcome {
	case OK, ClientError, ProviderError, ProviderLimited, Aborted:
		bucket, found := slices.BinarySearch(latencyBounds, took)
		if found {
			bucket++
		}
		return bucket, e.Requests > 0 && took > 0
	}
	return 0, false
}

// count adds n calls to a bucket.
func (l *Latency) count(bucket int, n int64) {
	if short := bucket + 1 - len(*l); short > 0 {
		*l = append(*l, make([]int64, short)...)
	}
	(*l)[bucket] += n
}

// plus adds another histogram, which it leaves alone.
func (l *Latency) plus(o Latency) {
	for bucket, n := range o {
		if n != 0 {
			l.count(bucket, n)
		}
	}
}

// Measured is how many calls are counted.
func (l Latency) Measured() (n int64) {
	for _, c := range l {
		n += c
	}
	return n
}

// Percentile is about how long the fastest p of a hundred calls took at most, by
// nearest rank: at most an eighth more or less than exactly that where it is from
// 10 ms to 630 s, else the end that it lies beyond. It is false where nothing was
// measured. p is from 1 to 100.
func (l Latency) Percentile(p int) (time.Duration, bool) {
	n := l.Measured()
	if n == 0 {
		return 0, false
	}
	rank := (n*int64(p) + 99) / 100
	for bucket, c := range l {
		if rank -= c; rank <= 0 {
			return latencyWithin(bucket), true
		}
	}
	return latencyWithin(len(latencyBounds)), true
}

// latencyWithin is the duration that is off by the least share of the truth,
// whichever of the bucket that is: the harmonic mean of its ends, in whole
// milliseconds.
func latencyWithin(bucket int) time.Duration {
	switch bucket {
	case 0:
		return latencyBounds[0]
	case len(latencyBounds):
		return latencyBounds[bucket-1]
	}
	low, high := latencyBounds[bucket-1].Seconds(), latencyBounds[bucket].Seconds()
	return time.Duration(2 * low * high / (low + high) * float64(time.Second)).Round(time.Millisecond)
}

// number is the literal that Postgres reads: the digits of every bucket, the last
// one first, without the zeros of those before the first that holds a call.
func (l Latency) number() string {
	first := slices.IndexFunc(l, func(n int64) bool { return n != 0 })
	if first < 0 {
		return "0"
	}
	var b strings.Builder
	for bucket := len(l) - 1; bucket >= first; bucket-- {
		if b.Len() == 0 {
			b.WriteString(strconv.FormatInt(l[bucket], 10))
		} else {
			fmt.Fprintf(&b, "%0*d", latencyDigits, l[bucket])
		}
	}
	fmt.Fprintf(&b, "e%d", latencyDigits*first)
	return b.String()
}

// readLatency is the histogram of a number as Postgres writes it.
func readLatency(number string) (l Latency, err error) {
	for bucket := 0; number != "" && number != "0"; bucket++ {
		cut := max(len(number)-latencyDigits, 0)
		n, err := strconv.ParseInt(number[cut:], 10, 64)
		if err != nil || n < 0 || bucket > len(latencyBounds) {
			return nil, fmt.Errorf("usage: %q is no histogram of latencies", number)
		}
		if n > 0 {
			l.count(bucket, n)
		}
		number = number[:cut]
	}
	return l, nil
}
