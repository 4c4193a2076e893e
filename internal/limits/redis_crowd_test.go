package limits_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
	"weir/internal/limits/redistest"
)

// crowd is an engine on Redis with bounds, and one limit of its tenant's customer.
type crowd struct {
	*testing.T
	*limits.Redis
	clock *limitstest.Clock
	each  limits.Limit
}

func newCrowd(t *testing.T, o limits.RedisOptions) *crowd {
	c := &crowd{T: t, clock: limitstest.NewClock(limitstest.Noon), each: limit(limits.DimensionTokens, limits.WindowMinute, 60)}
	o.Client, o.Prefix, o.Now, o.After = redistest.Start(t).Client(), id.New().String()+":", c.clock.Now, c.clock.After
	c.Redis = limits.NewRedis(o)
	c.each.EachModel = true
	return c
}

func (c *crowd) reserve(model string, tokens int64) (limits.Decision, error) {
	return c.Reserve(c.T.Context(), limits.Request{
		Tenant: tenant, Customer: customer, Model: model, Plan: []*limits.Set{limits.Compile([]limits.Limit{c.each})},
		Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: tokens}}, TTL: time.Minute,
	})
}

func (c *crowd) admitted(model string, tokens int64) limits.Decision {
	c.Helper()
	d, err := c.reserve(model, tokens)
	if err != nil || !d.Admitted {
		c.Fatalf("%s: %+v, %v", model, d, err)
	}
	return d
}

func (c *crowd) full(model string) {
	c.Helper()
	if _, err := c.reserve(model, 10); fault.Of(err).Code != "limiter_unavailable" {
		c.Fatalf("%s, beyond the bound: %v", model, err)
	}
}

func TestNamesBeyondTheBoundShareOneLedgerOnRedisToo(t *testing.T) {
	c := newCrowd(t, limits.RedisOptions{MaxNames: 3})
	for i := range 3 {
		c.admitted(fmt.Sprint("m", i), 60)
	}
	c.admitted("one more", 40)
	if d, err := c.reserve("yet another", 40); err != nil || d.Admitted || d.RetryAfter != 20*time.Second {
		t.Fatalf("%+v, %v: all that are beyond the bound share one ledger", d, err)
	}
	if d, err := c.reserve("m0", 1); err != nil || d.Admitted {
		t.Fatal("a name within the bound was given another ledger")
	}
	c.clock.Move(3 * time.Hour)
	for i := range 3 {
		c.admitted(fmt.Sprint("n", i), 60)
	}
}

func TestATenantHasSoManyLedgersOnRedisAndNoMore(t *testing.T) {
	c := newCrowd(t, limits.RedisOptions{MaxLedgers: 3})
	for i := range 3 {
		c.admitted(fmt.Sprint("m", i), 10)
	}
	c.full("one more")
	c.admitted("m0", 10)
	c.clock.Move(3 * time.Hour)
	c.admitted("one more", 10)
}

func TestATenantHasSoManyOpenReservationsOnRedisAndNoMore(t *testing.T) {
	c := newCrowd(t, limits.RedisOptions{MaxOpen: 2})
	first := c.admitted("m", 10)
	c.admitted("m", 10)
	c.full("m")
	if _, err := c.Cancel(t.Context(), tenant, first.Reservation.ID); err != nil {
		t.Fatal(err)
	}
	c.admitted("m", 10)
}

func TestACustomerHasAHundredCallsThatWaitOnRedisAndNoMore(t *testing.T) {
	c := newCrowd(t, limits.RedisOptions{})
	c.each.Amount = 600
	c.admitted("m", 600)
	done := make(chan error, 101)
	for range 101 {
		go func() {
			d, err := c.Reserve(t.Context(), limits.Request{
				Tenant: tenant, Customer: customer, Model: "m", Plan: []*limits.Set{limits.Compile([]limits.Limit{c.each})},
				Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 1}}, MaxWait: 59 * time.Second, TTL: time.Minute,
			})
			if err == nil && !d.Admitted {
				err = errors.New("refused")
			}
			done <- err
		}()
	}
	if err := <-done; err == nil || err.Error() != "refused" {
		t.Fatalf("of 101 calls that wait the first to end: %v", err)
	}
	c.clock.Sleepers(t, 100)
	c.clock.Move(20 * time.Second)
	for range 100 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
