package boot

import (
	"context"
	"net/http"
	"time"

	"weir/internal/postgres"
)

// shutdown stops a started API in order. Whatever takes too long is cut, and
// what it used is found by the next life.
func (a *API) shutdown(server *http.Server, stopWork context.CancelFunc) {
	a.ended.Store(true)
	if a.ready.Load() != nil {
		time.Sleep(a.cfg.LameDuck)
	}
	if a.endPages != nil {
		a.endPages()
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.DrainFor)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		a.cut(server)
	}
	if a.publisher != nil && a.ready.Load() != nil {
		drain, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if err := a.publisher.Drained(drain); err != nil {
			a.log.Info("events stay in the spool for the next start", "error", err)
		}
		cancel()
	}
	if a.halt != nil {
		a.halt()
	}
	stopWork()
	if a.background != nil {
		_ = a.background.Wait() // their errors were Run's to report
	}
	a.closeSpool()
	if a.queue != nil {
		a.queue.Close()
	}
	if a.guard != nil {
		a.guard.Close()
	}
	for _, db := range []*postgres.DB{a.db, a.changes} {
		if db != nil {
			db.Close()
		}
	}
}

// cut ends the calls that still run: each says so to its client, and is settled.
func (a *API) cut(server *http.Server) {
	if a.halt != nil {
		a.halt()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		a.log.Warn("connections cut", "error", err)
		_ = server.Close()
	}
}

func (a *API) closeSpool() {
	if a.spool == nil {
		return
	}
	var snapshot []byte
	if a.engine != nil {
		a.meter.Close()
	}
	if a.memory != nil {
		snapshot, _ = a.memory.Snapshot() // without it the next life reads what was kept last
	}
	if err := a.spool.Close(snapshot); err != nil {
		a.log.Error("spool not closed", "error", err)
	}
}
