package usage

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue"
	"weir/internal/queue/queuetest"
)

// workerChild is a worker that kills or stops itself at its second message,
// before or after the commit.
func workerChild() {
	db, err := postgres.Open(context.Background(), os.Getenv("WEIR_TEST_DB"), postgres.Options{})
	if err != nil {
		panic(err)
	}
	q, err := queue.Connect(queue.Options{URL: os.Getenv("WEIR_TEST_NATS"), StreamBytes: 1 << 30})
	if err != nil {
		panic(err)
	}
	var n atomic.Int64
	die := func() {
		if n.Add(1) != 2 {
			return
		}
		if os.Getenv("WEIR_TEST_STOP") != "" {
			goesOn := make(chan os.Signal, 1)
			signal.Notify(goesOn, syscall.SIGCONT)
			fmt.Println("stops")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-goesOn // a stop takes a moment to reach every thread
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	w := NewWorker(db, q, testKeys, WorkerOptions{AckWait: time.Second, Parallel: 1})
	if os.Getenv("WEIR_TEST_DIE") == "before commit" {
		w.beforeCommit = die
	} else {
		w.beforeAck = die
	}
	_ = w.Run(context.Background())
}

func TestKilledWorkerLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before commit", "after commit, before ack"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			db, nats := postgrestest.New(t), queuetest.New(t)
			s, _ := fastSpool(t, t.TempDir())
			p, _ := publishing(t, s, nats.Connect(), db.App)
			for range 3 {
				p := child(t, "worker", "WEIR_TEST_DB="+db.WorkerURL, "WEIR_TEST_NATS="+nats.URL, "WEIR_TEST_DIE="+when)
				died := make(chan error, 1)
				go func() { died <- p.wait() }()
				for alive := true; alive; {
					spend(t, s, 10)
					select {
					case err := <-died:
						if fmt.Sprint(err) != "signal: killed" {
							t.Fatalf("the worker ended with %v", err)
						}
						alive = false
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
			working(t, nats.Connect(), db.Worker)
			drained(t, p)
			given := int64(0)
			for _, n := range s.progress().given {
				given += n
			}
			wantTotals(t, db.Worker, calls(given))
		})
	}
}

// TestAWorkerThatIsStoppedAndGoesOnDoublesNothing: its message comes to another
// one meanwhile, which goes on without it, and what it does when it wakes up counts
// nothing twice. F14 of the faults.
func TestAWorkerThatIsStoppedAndGoesOnDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before commit", "after commit, before ack"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			db, nats := postgrestest.New(t), queuetest.New(t)
			s, _ := fastSpool(t, t.TempDir())
			p, _ := publishing(t, s, nats.Connect(), db.App)
			worker := child(t, "worker", "WEIR_TEST_DB="+db.WorkerURL, "WEIR_TEST_NATS="+nats.URL, "WEIR_TEST_DIE="+when, "WEIR_TEST_STOP=1")
			stopped := make(chan struct{})
			go func() { worker.lines.Scan(); close(stopped) }()
			n := int64(0)
			for waits := true; waits; {
				spend(t, s, 10)
				n += 10
				select {
				case <-stopped:
					waits = false
				case <-time.After(20 * time.Millisecond):
				}
			}
			working(t, nats.Connect(), db.Worker)
			spend(t, s, 200)
			n += 200
			if when == "before commit" { // it holds rows, until it goes on or Postgres ends its transaction
				eventually(t, "the other one waits for it", func() bool {
					return query[bool](t, db.Worker, "select exists (select from pg_locks where not granted)")
				})
			} else {
				drained(t, p)
			}
			must(t, worker.Process.Signal(syscall.SIGCONT))
			drained(t, p)
			spend(t, s, 50)
			drained(t, p)
			wantTotals(t, db.Worker, calls(n+50))
		})
	}
}
