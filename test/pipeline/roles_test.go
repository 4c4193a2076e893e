// Package pipeline kills each process between a call's end and the books, again
// and again, and then holds the books against what the callers saw.
package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/postgres"
	"weir/internal/queue"
	"weir/internal/usage"
)

// TestMain lets the test start this binary again as a process to be killed.
func TestMain(m *testing.M) {
	roles := map[string]func() error{"nats": natsRole, "worker": workerRole, "source": sourceRole}
	if role, ok := roles[os.Getenv("WEIR_ROLE")]; ok {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var signing = usage.SigningKeys{Current: "k", Keys: map[string][]byte{"k": []byte(strings.Repeat("s", 32))}}

// natsRole is a NATS server on a given port and store.
func natsRole() error {
	port, err := strconv.Atoi(os.Getenv("WEIR_PORT"))
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: os.Getenv("WEIR_STORE"), NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 8 << 30,
	})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

func connect() (*postgres.DB, *queue.Conn, error) {
	db, err := postgres.Open(context.Background(), os.Getenv("WEIR_DB"), postgres.Options{MaxConns: 8})
	if err != nil {
		return nil, nil, err
	}
	q, err := queue.Connect(queue.Options{URL: os.Getenv("WEIR_NATS"), StreamBytes: 1 << 30})
	return db, q, err
}

func workerRole() error {
	db, q, err := connect()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			_ = usage.NewWorker(db, q, signing, usage.WorkerOptions{AckWait: 2 * time.Second, Log: slog.New(slog.DiscardHandler)}).Run(context.Background())
		})
	}
	group.Wait()
	return nil
}

// sourceRole is an API instance as the pipeline knows it: it closes what its
// earlier life left open, ends calls at a steady pace until there are as many as
// it was told, and publishes. What a caller saw end stands in a ledger of its own.
// The spools in WEIR_ADOPT are brought to their end beside it.
func sourceRole() error {
	db, q, err := connect()
	if err != nil {
		return err
	}
	for _, dir := range filepath.SplitList(os.Getenv("WEIR_ADOPT")) {
		spool, err := openLife(dir)
		if err != nil {
			return err
		}
		go publish(spool, q, db)
	}
	spool, err := openLife(os.Getenv("WEIR_DIR"))
	if err != nil {
		return err
	}
	go publish(spool, q, db)
	return produce(spool)
}

func openLife(dir string) (*usage.Spool, error) {
	log := slog.New(slog.DiscardHandler)
	spool, rec, err := usage.OpenSpool(dir, usage.SpoolOptions{SegmentBytes: 1 << 20, SyncEvery: 20 * time.Millisecond, KeepFor: time.Second, Log: log})
	if err != nil {
		return nil, err
	}
	if len(rec.Damage) > 0 {
		return nil, fmt.Errorf("damage without a power cut: %+v", rec.Damage)
	}
	_, _, err = usage.CloseOpen(context.Background(), spool, rec.Open, nil, time.Now())
	return spool, err
}

func publish(spool *usage.Spool, q *queue.Conn, db *postgres.DB) {
	o := usage.PublisherOptions{PollEvery: 100 * time.Millisecond, ResendAfter: time.Second, BeatEvery: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	_ = usage.NewPublisher(spool, q, db, signing, o).Run(context.Background())
}

// produce ends calls, some at once on several goroutines, until the ledger has
// its number; then it only publishes.
func produce(spool *usage.Spool) error {
	path, goal := os.Getenv("WEIR_LEDGER"), os.Getenv("WEIR_GOAL")
	want, err := strconv.Atoi(goal)
	if err != nil {
		return err
	}
	before, _ := os.ReadFile(path) // missing at first
	ledger, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var made atomic.Int64
	made.Store(int64(bytes.Count(before, []byte{'\n'})))
	pace := time.NewTicker(25 * time.Millisecond)
	var group sync.WaitGroup
	for made.Load() < int64(want) {
		<-pace.C
		for range 4 {
			group.Go(func() {
				for range 40 {
					if made.Add(1) > int64(want) {
						return
					}
					if err := one(spool, ledger); err != nil {
						made.Add(-1)
						return
					}
				}
			})
		}
		group.Wait()
	}
	select {}
}

// one is a call from its admission to its end, and the line that says what its
// caller saw. Now and then a call stays open for a while.
func one(spool *usage.Spool, ledger *os.File) error {
	e := event(time.Now())
	open := e
	open.Outcome, open.Estimated = usage.Expired, "expired"
	if err := spool.Admit(&usage.Admission{Event: open, Reservation: limits.Reservation{
		ID: e.ID, Tenant: e.Tenant, Model: e.ModelAsked, At: e.StartedAt, ExpiresAt: e.StartedAt.Add(10 * time.Minute), Estimate: e.Estimate,
	}}); err != nil {
		return err
	}
	if err := spool.Finish(&e); err != nil {
		return err
	}
	_, err := fmt.Fprintf(ledger, "%s %s %d %d\n", e.ID, e.Tenant, e.Tokens.Total(), e.Charge.Big())
	return err
}

// event is a call with figures of its own, of one of a few tenants.
func event(at time.Time) usage.Event {
	at = at.UTC().Truncate(time.Microsecond)
	tenant := uuid.NewSHA1(uuid.Nil, []byte{byte(rand.IntN(5))})
	customer := uuid.NewSHA1(tenant, []byte{byte(rand.IntN(3))})
	input, output := rand.Int64N(1000), rand.Int64N(500)
	cost := money.FromInt(input)
	return usage.Event{
		Version: 1, ID: id.At(at), RequestID: id.At(at), Tenant: tenant, Customer: customer, Key: customer, Counter: customer, ProviderKey: tenant,
		ModelAsked: fmt.Sprint("m", rand.IntN(3)), ModelServed: "m", Kind: "chat", StartedAt: at, EndedAt: at, LocalDay: limits.DayStart(at, time.UTC),
		Outcome: usage.OK, Requests: 1, Tokens: limits.Tokens{Input: input, Output: output}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: input, Output: 500}},
		Charges: []limits.Charge{{Ledger: "customer:" + customer.String() + "/tokens/day", WindowStart: limits.DayStart(at, time.UTC), Amount: input + output}},
		Charge:  money.FromInt(input * output), Currency: "USD", Cost: &cost, CostCurrency: "USD",
	}
}
