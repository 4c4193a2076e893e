package usage

import (
	"math/bits"
	"strconv"
	"strings"
)

// outputs is how many calls had so many output tokens: exact below 16, then in
// eight buckets an octave, so that the top of a bucket is at most an eighth above
// what is in it. It is as long as its last bucket that holds a call.
type outputs []int64

// bucketOf is the bucket of a number of tokens.
func bucketOf(n int64) int {
	if n < 16 {
		return int(max(n, 0))
	}
	octave := bits.Len64(uint64(n)) - 1
	return 16 + (octave-4)*8 + int(n>>(octave-3))&7
}

// topOf is the largest number of tokens in a bucket.
func topOf(bucket int) int64 {
	if bucket < 16 {
		return int64(bucket)
	}
	octave, part := 4+(bucket-16)/8, int64(bucket-16)%8
	return (8+part+1)<<(octave-3) - 1
}

// add counts n calls more in a bucket.
func (o *outputs) add(bucket int, n int64) {
	for len(*o) <= bucket {
		*o = append(*o, 0)
	}
	(*o)[bucket] += n
}

func (o *outputs) plus(other outputs) {
	for bucket, n := range other {
		if n != 0 {
			o.add(bucket, n)
		}
	}
}

// array is the literal that Postgres reads.
func (o outputs) array() string {
	list := make([]string, len(o))
	for i, n := range o {
		list[i] = strconv.FormatInt(n, 10)
	}
	return "{" + strings.Join(list, ",") + "}"
}
