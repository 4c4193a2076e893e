package usage

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue"
)

// BenchmarkIngest commits runs of 500 events of 20 keys, as one worker does.
func BenchmarkIngest(b *testing.B) {
	db := postgrestest.New(b)
	w := NewWorker(db.Worker, nil, testKeys, WorkerOptions{Log: quiet(b)})
	s, tenant := newSource(), id.New()
	var keys []uuid.UUID
	for range 20 {
		keys = append(keys, id.New())
	}
	at := time.Now()
	var messages []queue.Message
	for range b.N {
		events := make([]Event, maxRunEvents)
		for i := range events {
			events[i] = call(tenant, at)
			events[i].Counter, events[i].Customer = keys[i%20], sub(keys[i%20], 1)
		}
		messages = append(messages, s.run(b, events...))
	}
	b.ResetTimer()
	for _, m := range messages {
		must(b, w.ingest(b.Context(), m))
	}
	b.ReportMetric(float64(b.N*maxRunEvents)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSpool admits and ends calls, as many at once as there are cores.
func BenchmarkSpool(b *testing.B) {
	s, _ := spoolAt(b, b.TempDir(), SpoolOptions{SyncEvery: 100 * time.Millisecond})
	tenant := id.New()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e := call(tenant, time.Now())
			must(b, s.Admit(admission(e)))
			must(b, s.Finish(&e))
		}
	})
}
