package limits_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
	"weir/internal/limits/redistest"
)

// readable are books of one process: nobody asks what a reading held.
type readable struct{ limits.Books }

func (b readable) Read(ctx context.Context, tenant uuid.UUID, keys []limits.WindowKey) ([]limits.Total, string, error) {
	totals, err := b.CapTotals(ctx, tenant, keys)
	return totals, "", err
}

func (readable) Held(context.Context, uuid.UUID, string, []uuid.UUID) ([]uuid.UUID, error) {
	return nil, nil
}

func TestRedis(t *testing.T) {
	client := redistest.Start(t).Client()
	limitstest.Run(t, func(_ testing.TB, o limitstest.Options) limitstest.Engine {
		var books limits.SharedBooks
		if o.Books != nil {
			books = readable{o.Books}
		}
		return limits.NewRedis(limits.RedisOptions{
			Client: client, Prefix: id.New().String() + ":", Now: o.Now, After: o.After, Books: books, Started: o.Started, Unclean: o.Unclean, LastAlive: o.LastAlive,
		})
	}, "testdata/dual_bucket_vectors.json", allZones(t))
}
