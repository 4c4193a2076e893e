package limits

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits/redistest"
)

// Without it every call would still be decided, at thrice the cost.
func TestTheUsualCallItsEndAndARefusalAreAnsweredFirst(t *testing.T) {
	r := NewRedis(RedisOptions{Client: redistest.Start(t).Client()})
	ctx, tenant := context.Background(), id.New()
	scope := Scope{Kind: ScopeCustomer, ID: id.New()}
	plan := []*Set{Compile([]Limit{
		Default(Limit{Scope: scope, Dimension: DimensionRequests, Window: WindowMinute, Amount: 3}),
		Default(Limit{Scope: scope, Dimension: DimensionTokens, Window: WindowDay, Amount: 1000}),
		Default(Limit{Scope: scope, Dimension: DimensionConcurrency, Window: WindowNone, Amount: 10}),
	})}
	req := Request{Tenant: tenant, Model: "m", Plan: plan, Estimate: Cost{Requests: 1, Tokens: Tokens{Input: 10}}}
	reserve := func() int64 {
		q := r.ask(r.tenant(tenant), req.Model)
		q.resolve(&req)
		a, err := r.run(ctx, tenant, q.t, func(wallMS int64) asked { return q.decision(farReserve, &req, wallMS) })
		if err != nil {
			t.Fatal(err)
		}
		return a.status
	}
	first, err := r.Reserve(ctx, req)
	if err != nil || !first.Admitted {
		t.Fatal(err, first)
	}
	for i, want := range []int64{farSwift, farSwift, farRefused} {
		if got := reserve(); got != want {
			t.Errorf("call %d is answered with status %d, not %d", 2+i, got, want)
		}
	}
	var p packer
	p.byte(int(settled))
	p.flag(false)
	p.str(packFigures(&Cost{Tokens: Tokens{Input: 5}}))
	p.str("")
	q := r.about(r.tenant(tenant), farEnd, first.Reservation.ID, p)
	q.keys = append(q.keys, r.tenant(tenant).key+"r"+string(first.Reservation.ID[:]))
	if a, err := r.exec(ctx, q, nil, 0); err != nil || a.status != farSwift {
		t.Errorf("its end is answered with status %d, not %d: %v", a.status, farSwift, err)
	}
}

func TestDefinitionsThatWereSqueezedComeBack(t *testing.T) {
	for _, list := range [][]Limit{nil, {{ID: uuid.New(), Models: []string{"gpt-4o*", "é"}, Zone: "America/Santiago", Weights: map[Class]int64{ClassOutput: 4000}}}} {
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{string(raw), squeezed(string(raw))} {
			if got, err := unsqueezed(kept); err != nil || string(got) != string(raw) {
				t.Errorf("%s came back as %s: %v", raw, got, err)
			}
		}
	}
}
