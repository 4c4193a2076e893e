package limits_test

import (
	"testing"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
	"weir/internal/limits/redistest"
)

func TestRedis(t *testing.T) {
	client := redistest.Start(t).Client()
	limitstest.Run(t, func(_ testing.TB, o limitstest.Options) limitstest.Engine {
		return limits.NewRedis(limits.RedisOptions{
			Client: client, Prefix: id.New().String() + ":", Now: o.Now, After: o.After, Books: o.Books, Started: o.Started, Unclean: o.Unclean, LastAlive: o.LastAlive,
		})
	}, "testdata/dual_bucket_vectors.json", allZones(t))
}
