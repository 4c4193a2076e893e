package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weir/client"
)

// ask stands for the call of a provider.
func ask(ctx context.Context) (client.Usage, error) {
	return client.Usage{InputTokens: 1180, OutputTokens: 640}, ctx.Err()
}

func connect() *client.Client {
	weir, err := client.New(client.Options{BaseURL: os.Getenv("WEIR_URL"), Key: os.Getenv("WEIR_KEY")})
	if err != nil {
		panic(err)
	}
	return weir
}

// A function runs under a reservation, which lives as long as it does and is
// settled with what it reports.
func ExampleClient_Do() {
	weir := connect()
	done, err := weir.Do(context.Background(), client.Call{
		Model:    "gpt-4o",
		Estimate: client.Estimate{InputTokens: 1200, OutputTokens: 800},
	}, func(ctx context.Context, _ client.Reservation) (client.Result, error) {
		usage, err := ask(ctx)
		return client.Result{Usage: usage}, err
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(done.State, done.Charged.InputTokens, done.Charged.OutputTokens)
	// Output: settled 1180 640
}

// The parts of Do, for a call that ends somewhere else than it began.
func ExampleClient_Reserve() {
	weir, ctx := connect(), context.Background()
	r, err := weir.Reserve(ctx, client.Call{Model: "gpt-4o", Estimate: client.Estimate{InputTokens: 1200, OutputTokens: 800}, TTL: time.Minute})
	if err != nil {
		panic(err)
	}
	stop := weir.KeepAlive(ctx, r.ID, time.Minute)
	usage, err := ask(ctx)
	stop()
	if err != nil {
		panic(err)
	}
	done, err := weir.Settle(ctx, r.ID, client.Result{Outcome: client.OK, Usage: usage})
	if err != nil {
		panic(err)
	}
	fmt.Println(done.State, done.Charged.Requests)
	// Output: settled 1
}

// A refusal names the limits, and says whether waiting helps.
func ExampleRefusal() {
	weir := connect()
	_, err := weir.Reserve(context.Background(), client.Call{Model: "gpt-4o", Estimate: client.Estimate{InputTokens: 300_000}})
	var refusal *client.Refusal
	if !errors.As(err, &refusal) {
		panic(err)
	}
	fmt.Println(refusal.Code, refusal.WaitHelps)
	for _, l := range refusal.Violations {
		fmt.Printf("%s of the %s: asked for %d, limit %d\n", l.Name, l.Scope, l.Requested, l.Limit)
	}
	// Output:
	// request_too_large false
	// tokens per day of the customer: asked for 300000, limit 200000
}

// Many calls at once, each for itself. Units count whatever you meter: the last
// one is three pages, and no tokens.
func ExampleClient_ReserveBatch() {
	weir, ctx := connect(), context.Background()
	verdicts, err := weir.ReserveBatch(ctx, []client.Call{
		{Model: "gpt-4o", Estimate: client.Estimate{InputTokens: 100, OutputTokens: 100}},
		{Model: "gpt-4o", Estimate: client.Estimate{InputTokens: 300_000}},
		{Estimate: client.Estimate{Units: 3}},
	})
	if err != nil {
		panic(err)
	}
	var ended []client.Settlement
	for i, v := range verdicts {
		if v.Err != nil {
			fmt.Println(i, "refused")
			continue
		}
		ended = append(ended, client.Settlement{ID: v.Reservation.ID, Result: client.Result{Outcome: client.OK}})
	}
	settled, err := weir.SettleBatch(ctx, ended)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(settled), "settled")
	// Output:
	// 1 refused
	// 2 settled
}

// What is left, and when the smallest call fits.
func ExampleClient_Limits() {
	live, err := connect().Limits(context.Background(), "", "gpt-4o")
	if err != nil {
		panic(err)
	}
	for _, l := range live.Limits {
		fmt.Println(l.Name, l.Limit.Limit, l.NextCallAfterMS)
	}
	// Output: tokens per day 200000 0
}
