package limits_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// TestReplicasThatFindRedisEmptyAtOnceCountTheDayOnce: three processes whose first
// calls come together, after 600 of 1000 were spent, leave what is left and not
// what each of them would load. G5 of the cases from the field.
func TestReplicasThatFindRedisEmptyAtOnceCountTheDayOnce(t *testing.T) {
	t.Parallel()
	const replicas, spent, each, amount = 3, 600, 100, 1000
	server, books, tenant := redistest.Start(t), &ledgerBooks{}, id.New()
	var engines [replicas]*limits.Redis
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range engines {
		e, err := limits.DialRedis(server.URL(), limits.RedisOptions{Books: books, Owner: id.New().String(), Budget: 5 * time.Second, Processes: replicas})
		if err != nil {
			t.Fatal(err)
		}
		engines[i] = e
		running.Go(func() { _ = e.Run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, e := range engines {
			e.Close()
		}
	})
	reserve := func(i int, set *limits.Set, tokens int64) limits.Decision {
		d, err := engines[i].Reserve(context.Background(), limits.Request{
			Tenant: tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: tokens}}, Forget: true,
		})
		if err != nil {
			t.Error(err)
		}
		return d
	}
	for round := range 20 {
		l := limits.Default(limits.Limit{
			Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: id.New()}, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: amount, Outage: limits.OutageShare,
		})
		set := limits.Compile([]limits.Limit{l})
		for i := range engines { // each has charged the day, and has told the books
			d := reserve(i, set, spent/replicas)
			o, err := engines[i].Settle(context.Background(), tenant, d.Reservation.ID, limits.Settlement{Actual: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: spent / replicas}}})
			if err != nil {
				t.Fatal(err)
			}
			books.add(d.Reservation.ID, o.Charges)
		}
		server.Flush()
		var together sync.WaitGroup
		start := make(chan struct{})
		for i := range engines {
			together.Go(func() {
				<-start
				if !reserve(i, set, each).Admitted {
					t.Errorf("round %d: there is room for 400 and %d was refused", round, each)
				}
			})
		}
		close(start)
		together.Wait()
		s, err := engines[0].Live(context.Background(), tenant, []limits.Limit{l}, "m", "")
		if err != nil {
			t.Fatal(err)
		}
		if used := s[0].Used + s[0].Held; used != spent+replicas*each {
			t.Fatalf("round %d: the day holds %d of %d that were charged", round, used, spent+replicas*each)
		}
		if last, over := reserve(1, set, each), reserve(2, set, each); !last.Admitted || over.Admitted {
			t.Fatalf("round %d: the last place was given %v, one more %v", round, last.Admitted, over.Admitted)
		}
	}
}
