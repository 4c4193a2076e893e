package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Handler does the work of some messages, at least one. Nil means that it is done
// for good, and they go; an error (or the end of the process) means that all of
// them come again, to this worker or another. It may take as long as it needs: the
// server is told meanwhile that they are in hand. Two handlers may hold one
// message at a time, so the work must bear being done twice.
type Handler func(ctx context.Context, list []Message) error

// ConsumeOptions bound one consuming process. All processes with the same name
// share the messages.
type ConsumeOptions struct {
	Name     string
	Parallel int           // handlers at once; 0: 1
	Together int           // the most messages that one is given, of those that are there; 0: 1
	AckWait  time.Duration // how long a silent worker keeps its message; 0: 30 s
	Log      *slog.Logger
}

// Consume hands messages to h until ctx ends, and returns ctx's error once the
// last handler has returned. A server that is away, and a stream or consumer
// that was deleted, are waited for and made again.
func (c *Conn) Consume(ctx context.Context, o ConsumeOptions, h Handler) error {
	if o.Parallel == 0 {
		o.Parallel = 1
	}
	if o.Together == 0 {
		o.Together = 1
	}
	if o.AckWait == 0 {
		o.AckWait = 30 * time.Second
	}
	wait := backoff{least: 100 * time.Millisecond, most: time.Second}
	for {
		began := time.Now()
		err := c.consume(ctx, o, h)
		if ctx.Err() != nil {
			_ = c.nc.FlushTimeout(time.Second)
			return ctx.Err()
		}
		if time.Since(began) > wait.most {
			wait.reset()
		}
		if wait.next == 0 {
			o.Log.Warn("usage consumer interrupted", "error", err)
		}
		wait.sleep(ctx)
	}
}

func (c *Conn) consume(ctx context.Context, o ConsumeOptions, h Handler) error {
	if err := c.EnsureStream(ctx); err != nil {
		return err
	}
	cons, err := c.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable:       o.Name,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: 1024,
	})
	if err != nil {
		return err
	}
	it, err := cons.Messages(jetstream.PullMaxMessages(o.Parallel*o.Together), jetstream.PullHeartbeat(2*time.Second), jetstream.PullExpiry(10*time.Second))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, it.Stop)()
	var inHand errgroup.Group
	inHand.SetLimit(o.Parallel)
	for {
		list, err := next(it, o.Together)
		if len(list) > 0 {
			inHand.Go(func() error { handle(ctx, o, h, list); return nil })
		}
		if err != nil {
			it.Stop()
			return errors.Join(err, inHand.Wait())
		}
	}
}

// moment is how long is waited for a message that may be there already.
const moment = time.Millisecond

// next waits for a message, and takes along what has come with it.
func next(it jetstream.MessagesContext, most int) (list []jetstream.Msg, err error) {
	m, err := it.Next()
	for ; err == nil; m, err = it.Next(jetstream.NextMaxWait(moment)) {
		if list = append(list, m); len(list) == most {
			return list, nil
		}
	}
	if len(list) > 0 && errors.Is(err, nats.ErrTimeout) {
		err = nil
	}
	return list, err
}

// handle keeps the messages in hand while h works, and acknowledges them only when
// h is done.
func handle(ctx context.Context, o ConsumeOptions, h Handler, list []jetstream.Msg) {
	stop := inProgress(list, o.AckWait/3)
	read := make([]Message, len(list))
	for i, m := range list {
		read[i] = message(m)
	}
	err := h(ctx, read)
	stop()
	for _, m := range list {
		answer(ctx, o, m, err)
	}
}

// answer tells the server what became of a message.
func answer(ctx context.Context, o ConsumeOptions, m jetstream.Msg, err error) {
	switch {
	case err == nil:
		err = m.Ack()
	case ctx.Err() != nil:
		_ = m.Nak()
		return
	default:
		_ = m.NakWithDelay(time.Second)
	}
	if err != nil {
		o.Log.Warn("usage message not finished", "subject", m.Subject(), "error", err)
	}
}

// inProgress tells the server at every interval that messages are in hand, until
// the function that it returns is called.
func inProgress(list []jetstream.Msg, every time.Duration) (stop func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				for _, m := range list {
					_ = m.InProgress()
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

func message(m jetstream.Msg) Message {
	h := make(map[string]string, len(m.Headers()))
	for k := range m.Headers() {
		h[k] = m.Headers().Get(k)
	}
	return Message{Subject: m.Subject(), ID: h[jetstream.MsgIDHeader], Header: h, Body: m.Data()}
}

// backoff doubles a wait from least to most.
type backoff struct {
	least, most, next time.Duration
}

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) sleep(ctx context.Context) {
	b.next = min(max(b.next*2, b.least), b.most)
	select {
	case <-ctx.Done():
	case <-time.After(b.next):
	}
}
