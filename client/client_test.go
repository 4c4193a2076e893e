package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/test/stack"
)

// world is a customer with a plan, and a client of its tenant's management key.
type world struct {
	stack.World
	*Client
}

func newWorld(t *testing.T, plan ...stack.Limit) world {
	t.Helper()
	w := weir.Setup(t, stack.Options{Plan: plan, Zone: stack.MiddayZone()})
	return world{w, newClient(t, weir.BaseURL(), w.ManagementKey)}
}

func newClient(t *testing.T, base, key string) *Client {
	t.Helper()
	c, err := New(Options{BaseURL: base, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w world) call(tokens int64) Call {
	return Call{Customer: w.Customer, Model: "gpt-4o", Estimate: Estimate{InputTokens: tokens}}
}

// used is what the first limit holds.
func (w world) used(t *testing.T) int64 {
	t.Helper()
	live, err := w.Limits(t.Context(), w.Customer, "gpt-4o")
	if err != nil {
		t.Fatal(err)
	}
	return live.Limits[0].Used
}

func perDay(tokens int64) stack.Limit {
	return stack.Limit{Dimension: "tokens", Window: "day", Amount: tokens}
}

var atOnce = stack.Limit{Dimension: "concurrency", Window: "none", Amount: 1}

func TestARefusalSaysWhoRefusedForHowLongAndWhetherWaitingHelps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Limit{Dimension: "tokens", Window: "minute", Amount: 60_000})
	if _, err := w.Reserve(t.Context(), w.call(60_000)); err != nil {
		t.Fatal(err)
	}
	for tokens, helps := range map[int64]bool{30_000: true, 60_001: false} {
		_, err := w.Reserve(t.Context(), w.call(tokens))
		var r *Refusal
		if !errors.As(err, &r) {
			t.Fatal(err)
		}
		if r.WaitHelps != helps || (r.RetryAfter > 20*time.Second && r.RetryAfter <= 30*time.Second) != helps || len(r.Violations) != 1 || r.Violations[0].Requested != tokens || r.Violations[0].Dimension != "tokens" || r.RequestID == "" {
			t.Errorf("%d tokens: %+v, %v", tokens, r, r.Violations)
		}
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				t.Errorf("a refusal is taken for %v", kind)
			}
		}
	}
	if _, err := w.Check(t.Context(), w.call(30_000)); err == nil {
		t.Error("what Reserve refuses, Check admits")
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(1000))
	r, err := w.Reserve(t.Context(), w.call(10))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Settle(t.Context(), r.ID, Result{Outcome: OK, Usage: Usage{InputTokens: 7}}); err != nil {
		t.Fatal(err)
	}
	keyed := w.call(1)
	keyed.Key = "mine"
	if _, err := w.Reserve(t.Context(), keyed); err != nil {
		t.Fatal(err)
	}
	keyed.Estimate.InputTokens++
	stranger, own := newClient(t, weir.BaseURL(), "weir_live_nobody"), newClient(t, weir.BaseURL(), w.Key)
	for name, c := range map[string]struct {
		do   func() error
		want error
	}{
		"another outcome":       {func() error { _, err := w.Settle(t.Context(), r.ID, Result{Outcome: Aborted}); return err }, ErrConflict},
		"extending what ended":  {func() error { _, err := w.Extend(t.Context(), r.ID, time.Minute); return err }, ErrConflict},
		"no such reservation":   {func() error { _, err := w.Cancel(t.Context(), "rsv_01kb0000000000000000000000"); return err }, ErrNotFound},
		"an id that is none":    {func() error { _, err := w.Cancel(t.Context(), "../x?y"); return err }, ErrNotFound},
		"a key for another":     {func() error { _, err := w.Reserve(t.Context(), keyed); return err }, ErrMismatch},
		"no such key":           {func() error { _, err := stranger.Limits(t.Context(), "", ""); return err }, ErrUnauthorized},
		"settling not allowed":  {func() error { _, err := own.Settle(t.Context(), r.ID, Result{Outcome: OK}); return err }, ErrForbidden},
		"counts that are wrong": {func() error { _, err := w.Reserve(t.Context(), w.call(-1)); return err }, ErrInvalid},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var p *Problem
	if _, err := w.Reserve(t.Context(), w.call(-1)); !errors.As(err, &p) || len(p.Fields) != 1 || p.Fields[0].Pointer != "/estimate/input_tokens" {
		t.Errorf("%v", err)
	}
	if again, err := w.Settle(t.Context(), r.ID, Result{Outcome: OK, Usage: Usage{InputTokens: 7}}); err != nil || again.Charged.InputTokens != 7 {
		t.Errorf("the same settlement again: %+v, %v", again, err)
	}
}

func TestACallWaitsForRoomWithinItsTimeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Limit{Dimension: "tokens", Window: "minute", Amount: 60_000})
	if _, err := w.Reserve(t.Context(), w.call(60_000)); err != nil {
		t.Fatal(err)
	}
	waiting := w.call(1000)
	waiting.MaxWait = 20 * time.Second
	if _, err := w.Reserve(t.Context(), waiting); err != nil {
		t.Errorf("a second's wait that fits into 20 s: %v", err)
	}
	waiting.Estimate.InputTokens, waiting.MaxWait = 50_000, time.Second
	began := time.Now()
	var r *Refusal
	if _, err := w.Reserve(t.Context(), waiting); !errors.As(err, &r) || r.RetryAfter < time.Second || time.Since(began) > 10*time.Second {
		t.Errorf("a wait that does not fit: %v after %s", err, time.Since(began))
	}
}

func TestAReservationLivesAsLongAsItsCallAndNoLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(1000), atOnce)
	k := w.call(10)
	k.TTL = time.Second
	done, err := w.Do(t.Context(), k, func(ctx context.Context, r Reservation) (Result, error) {
		for over := r.ExpiresAt.Add(700 * time.Millisecond); time.Now().Before(over); { // long enough to expire, and to be seen to
			var refusal *Refusal
			if _, err := w.Check(ctx, w.call(10)); !errors.As(err, &refusal) || refusal.Code != "concurrency_limit_exceeded" {
				return Result{}, fmt.Errorf("while it runs its slot is free: %w", err)
			}
		}
		return Result{Usage: Usage{InputTokens: 4}}, nil
	})
	if err != nil || done.Late || done.Charged.InputTokens != 4 {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := w.Check(t.Context(), w.call(10)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestHoweverACallEndsItsReservationDoesToo(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		call  func(context.Context, Reservation) (Result, error)
		state string
		used  int64 // tokens
		err   error
	}{
		"well":        {func(context.Context, Reservation) (Result, error) { return Result{Usage: Usage{OutputTokens: 4}}, nil }, "settled", 4, nil},
		"unsent":      {func(context.Context, Reservation) (Result, error) { return Result{}, fmt.Errorf("no: %w", ErrNotSent) }, "cancelled", 0, ErrNotSent},
		"failed":      {func(context.Context, Reservation) (Result, error) { return Result{Usage: Usage{InputTokens: 2}}, boom }, "settled", 2, boom},
		"interrupted": {func(context.Context, Reservation) (Result, error) { cancel(); return Result{}, ctx.Err() }, "settled", 0, context.Canceled},
	} {
		w := newWorld(t, perDay(1000), atOnce)
		of := t.Context()
		if name == "interrupted" {
			of = ctx
		}
		done, err := w.Do(of, w.call(10), c.call)
		if done.State != c.state || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if used := w.used(t); used != c.used {
			t.Errorf("%s: %d tokens are used, want %d", name, used, c.used)
		}
	}
	w := newWorld(t, perDay(1000), atOnce)
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic is lost")
			}
		}()
		_, _ = w.Do(t.Context(), w.call(10), func(context.Context, Reservation) (Result, error) { panic("boom") })
	}()
	if used := w.used(t); used != 0 {
		t.Errorf("after a panic %d tokens are held", used)
	}
	ran := false
	if _, err := w.Do(t.Context(), w.call(1001), func(context.Context, Reservation) (Result, error) { ran = true; return Result{}, nil }); err == nil || ran {
		t.Errorf("a refused call: ran %v, %v", ran, err)
	}
}

func TestABatchOfFiveHundredIsReservedAndSettledEachForItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(4_990))
	calls := make([]Call, MaxBatch)
	for i := range calls {
		calls[i] = w.call(10)
	}
	calls[7] = w.call(-1)
	calls[8].Customer = "cus_01kb0000000000000000000000"
	verdicts, err := w.ReserveBatch(t.Context(), append(calls[:MaxBatch-1:MaxBatch-1], w.call(4_000)))
	if err != nil {
		t.Fatal(err)
	}
	var list []Settlement
	for i, v := range verdicts {
		var refusal *Refusal
		switch i {
		case 7:
			if !errors.Is(v.Err, ErrInvalid) {
				t.Errorf("%d: %v", i, v.Err)
			}
		case 8:
			if !errors.Is(v.Err, ErrNotFound) {
				t.Errorf("%d: %v", i, v.Err)
			}
		case MaxBatch - 1:
			if !errors.As(v.Err, &refusal) || refusal.Code != "daily_cap_reached" || !refusal.WaitHelps {
				t.Errorf("%d: %v", i, v.Err)
			}
		default:
			if v.Err != nil {
				t.Fatalf("%d: %v", i, v.Err)
			}
			list = append(list, Settlement{v.Reservation.ID, Result{Outcome: OK, Usage: Usage{InputTokens: 3}}})
		}
	}
	list = append(list, Settlement{"rsv_01kb0000000000000000000000", Result{Outcome: OK}})
	settled, err := w.SettleBatch(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range settled {
		if i < len(list)-1 && (v.Err != nil || v.Settled.State != "settled") || i == len(list)-1 && !errors.Is(v.Err, ErrNotFound) {
			t.Errorf("settlement %d: %+v", i, v)
		}
	}
	if used := w.used(t); used != 497*3 {
		t.Errorf("%d tokens are used, want %d", used, 497*3)
	}
	if _, err := w.ReserveBatch(t.Context(), append(calls, calls[0])); !errors.Is(err, ErrInvalid) {
		t.Errorf("501 calls: %v", err)
	}
}

func TestManyCallsAtOnceShareOneClientAndItsConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, perDay(1_000_000), stack.Limit{Dimension: "concurrency", Window: "none", Amount: 100})
	p := newProxy(t)
	c := newClient(t, p.URL, w.ManagementKey)
	var all sync.WaitGroup
	var failed atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 10 {
				if _, err := c.Do(t.Context(), w.call(10), func(context.Context, Reservation) (Result, error) { return Result{Usage: Usage{InputTokens: 5}}, nil }); err != nil {
					failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of 160 calls failed", n)
	}
	if used := w.used(t); used != 800 {
		t.Errorf("160 calls of 5 tokens took %d", used)
	}
	if n := p.connections.Load(); n > 32 {
		t.Errorf("320 requests of 16 callers took %d connections", n)
	}
}

func TestAnotherModuleCanUseItAndGetsNothingBesideTheStandardLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	root, err := filepath.Abs(stack.Root())
	if err != nil {
		t.Fatal(err)
	}
	run("mod", "init", "example.com/mine")
	run("mod", "edit", "-require", "weir@v0.0.0", "-replace", "weir="+root)
	writeFile(t, filepath.Join(dir, "main.go"), `package main

import "weir/client"

func main() {
	_, _ = client.New(client.Options{BaseURL: "https://weir.example", Key: "k"})
}
`)
	run("build", "-o", "mine", ".")
	if others := strings.Fields(run("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "weir/client")); len(others) != 1 {
		t.Errorf("it needs %v", others)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for _, o := range []Options{{}, {BaseURL: "weir.example", Key: "k"}, {BaseURL: "ftp://weir.example", Key: "k"}, {BaseURL: "https://weir.example"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	if _, err := New(Options{BaseURL: "https://weir.example/", Key: "k", HTTP: &http.Client{}}); err != nil {
		t.Error(err)
	}
}

func TestEachEndUserHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Limit{Dimension: "tokens", Window: "day", Amount: 1000, Scope: "end_user"})
	for _, user := range []string{"ann", "bob"} {
		call := w.call(1000)
		call.EndUser = user
		if _, err := w.Reserve(t.Context(), call); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		var r *Refusal
		if _, err := w.Reserve(t.Context(), call); !errors.As(err, &r) || len(r.Violations) != 1 || r.Violations[0].Scope != "end_user" {
			t.Errorf("%s again: %v", user, err)
		}
	}
	for user, want := range map[string]int64{"ann": 0, "carl": 1000} {
		live, err := w.LimitsOf(t.Context(), w.Customer, "", user)
		if err != nil || len(live.Limits) != 1 || live.Limits[0].Remaining != want {
			t.Errorf("%s: %+v, %v", user, live, err)
		}
	}
}
