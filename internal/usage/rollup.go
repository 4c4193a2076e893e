package usage

import (
	"bytes"
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// rollupKey is one row of a rollup table. A dimension that the call does not
// have is zero. The outcome is kept as it is, refusals by dimension and window
// too: there are few, and reports fold them.
type rollupKey struct {
	tenant                         uuid.UUID
	bucket                         int64 // Unix seconds
	customer, counter, providerKey uuid.UUID
	asked, served                  string
	outcome                        Outcome
	test                           bool
	currency, costCurrency         string
}

// sums are what a row of a rollup adds up.
type sums struct {
	requests, refused, units int64
	tokens                   limits.Tokens
	charge, cost             *big.Int
	latency                  Latency
}

// rollups are what events add to the three tables.
type rollups struct{ minutes, quarters, days map[rollupKey]*sums }

// tally adds the events up. A call belongs to the buckets of its admission; the
// minutes of one of the tenant's days make its quarters and that day.
func tally(events []*Event) rollups {
	type minute struct {
		rollupKey
		day int64 // Unix seconds
	}
	finest := make(map[minute]*sums)
	for _, e := range events {
		k := minute{rollupKey{
			e.Tenant, e.StartedAt.Truncate(time.Minute).Unix(), e.Customer, e.Counter, e.ProviderKey,
			e.ModelAsked, e.ModelServed, e.Outcome, e.Test, e.Currency, e.CostCurrency,
		}, e.LocalDay.Unix()}
		s := finest[k]
		if s == nil {
			s = newSums()
			finest[k] = s
		}
		s.add(e)
	}
	r := rollups{make(map[rollupKey]*sums, len(finest)), make(map[rollupKey]*sums, len(finest)), make(map[rollupKey]*sums, len(finest))}
	for k, s := range finest {
		at := k.bucket
		merge(r.minutes, k.rollupKey, at, s)
		merge(r.quarters, k.rollupKey, time.Unix(at, 0).Truncate(15*time.Minute).Unix(), s)
		merge(r.days, k.rollupKey, k.day, s)
	}
	return r
}

func newSums() *sums { return &sums{charge: new(big.Int), cost: new(big.Int)} }

// merge adds sums to a row's.
func merge(rows map[rollupKey]*sums, k rollupKey, bucket int64, more *sums) {
	k.bucket = bucket
	s := rows[k]
	if s == nil {
		s = newSums()
		rows[k] = s
	}
	s.requests += more.requests
	s.refused += more.refused
	s.units += more.units
	s.tokens.Input += more.tokens.Input
	s.tokens.CachedInput += more.tokens.CachedInput
	s.tokens.CacheWrite += more.tokens.CacheWrite
	s.tokens.Output += more.tokens.Output
	s.tokens.Reasoning += more.tokens.Reasoning
	s.charge.Add(s.charge, more.charge)
	s.cost.Add(s.cost, more.cost)
	s.latency.plus(more.latency)
}

func (s *sums) add(e *Event) {
	s.requests += e.Requests
	s.refused += e.Refused
	s.units += e.Units
	s.tokens.Input += e.Tokens.Input
	s.tokens.CachedInput += e.Tokens.CachedInput
	s.tokens.CacheWrite += e.Tokens.CacheWrite
	s.tokens.Output += e.Tokens.Output
	s.tokens.Reasoning += e.Tokens.Reasoning
	e.Charge.AddTo(s.charge)
	if e.Cost != nil {
		e.Cost.AddTo(s.cost)
	}
	if bucket, ok := e.measured(); ok {
		s.latency.count(bucket, 1)
	}
}

// inOrder is every key in the one order in which all workers lock rows.
func inOrder(rows map[rollupKey]*sums) []rollupKey {
	return slices.SortedFunc(maps.Keys(rows), func(a, b rollupKey) int {
		return cmp.Or(
			bytes.Compare(a.tenant[:], b.tenant[:]), cmp.Compare(a.bucket, b.bucket),
			bytes.Compare(a.customer[:], b.customer[:]), bytes.Compare(a.counter[:], b.counter[:]), bytes.Compare(a.providerKey[:], b.providerKey[:]),
			strings.Compare(a.asked, b.asked), strings.Compare(a.served, b.served), strings.Compare(string(a.outcome), string(b.outcome)),
			cmp.Compare(rank(a.test), rank(b.test)), strings.Compare(a.currency, b.currency), strings.Compare(a.costCurrency, b.costCurrency),
		)
	})
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// capKey is one calendar window of one ledger.
type capKey struct {
	tenant uuid.UUID
	ledger string
	start  int64 // Unix seconds
}

// tallyCaps adds up what the events charged to calendar ledgers.
func tallyCaps(events []*Event) map[capKey]limits.Total {
	caps := make(map[capKey]limits.Total)
	for _, e := range events {
		for _, c := range e.Charges {
			k := capKey{e.Tenant, c.Ledger, c.WindowStart.Unix()}
			caps[k] = limits.Total{Amount: caps[k].Amount + c.Amount, Pico: caps[k].Pico + c.Pico}
		}
	}
	return caps
}

func capsInOrder(caps map[capKey]limits.Total) []capKey {
	return slices.SortedFunc(maps.Keys(caps), func(a, b capKey) int {
		return cmp.Or(bytes.Compare(a.tenant[:], b.tenant[:]), strings.Compare(a.ledger, b.ledger), cmp.Compare(a.start, b.start))
	})
}
