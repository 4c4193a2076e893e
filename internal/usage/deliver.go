package usage

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	windowRuns  = 32
	sendTimeout = 5 * time.Second
)

// deliver publishes the runs, the same ones again until the queue has taken all
// of them or ctx ends.
func (p *Publisher) deliver(ctx context.Context, runs []run) {
	wait := 100 * time.Millisecond
	for tries := 0; len(runs) > 0 && ctx.Err() == nil; tries++ {
		left, err := p.publish(ctx, runs)
		if len(left) == 0 {
			return
		}
		if tries == 0 {
			p.o.Log.Warn("usage events wait for the queue", "runs", len(left), "error", err)
		}
		if len(left) == len(runs) {
			sleep(ctx, wait)
			wait = min(2*wait, time.Second)
		}
		runs = left
		_ = p.queue.EnsureStream(ctx) // Publish says whether that helped
	}
}

// publish returns the runs that the queue did not take, and why the first of
// them was not.
func (p *Publisher) publish(ctx context.Context, runs []run) ([]run, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(windowRuns)
	failed := make([]error, len(runs))
	for i, r := range runs {
		g.Go(func() error {
			failed[i] = p.queue.Publish(ctx, p.keys.message(r))
			return failed[i]
		})
	}
	err := g.Wait()
	var left []run
	p.tookMu.Lock()
	defer p.tookMu.Unlock()
	for i, r := range runs {
		if failed[i] != nil {
			left = append(left, r)
		} else {
			p.took[r.shard] = max(p.took[r.shard], r.last)
		}
	}
	return left, err
}

// taken is the last number of a shard that the queue has acknowledged.
func (p *Publisher) taken(shard int) int64 {
	p.tookMu.Lock()
	defer p.tookMu.Unlock()
	return p.took[shard]
}
