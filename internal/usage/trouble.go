package usage

import (
	"context"
	"log/slog"
	"time"
)

// trouble says that something does not work when that begins, and when it ends.
type trouble struct {
	log  *slog.Logger
	what string
	on   bool
}

func (t *trouble) say(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !t.on:
		t.log.Warn(t.what, "error", err)
		t.on = true
	case err == nil && t.on:
		t.log.Info("it works again: " + t.what)
		t.on = false
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
