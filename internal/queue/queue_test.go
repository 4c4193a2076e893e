package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"weir/internal/fault"
	"weir/internal/queue"
	"weir/internal/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, queuetest.Leaks()...) }

func message(n int) queue.Message {
	return queue.Message{Subject: queue.Subject(n % 8), ID: fmt.Sprint("m", n), Header: map[string]string{"N": fmt.Sprint(n)}, Body: []byte("body")}
}

// publish tries until the queue takes the message.
func publish(t *testing.T, c *queue.Conn, m queue.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		_ = c.EnsureStream(ctx)
		if err := c.Publish(ctx, m); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// consuming hands every message to h and a count of how often each ID came to
// the returned function, until the test ends.
func consuming(t *testing.T, c *queue.Conn, h func(n int, m queue.Message) error) (seen func(id string) int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o := queue.ConsumeOptions{Name: "test", Parallel: 2, AckWait: 300 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
		err := c.Consume(ctx, o, func(_ context.Context, list []queue.Message) (err error) {
			for _, m := range list {
				mu.Lock()
				counts[m.ID]++
				n := counts[m.ID]
				mu.Unlock()
				err = errors.Join(err, h(n, m))
			}
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func(id string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[id]
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func empty(t *testing.T, c *queue.Conn, subject string) func() bool {
	t.Helper()
	return func() bool {
		n, err := c.Waiting(t.Context(), subject)
		return err == nil && n == 0
	}
}

func TestMessageComesAgainUntilItIsDone(t *testing.T) {
	t.Parallel()
	c := queuetest.New(t).Connect()
	publish(t, c, message(1))
	seen := consuming(t, c, func(n int, m queue.Message) error {
		if m.Header["N"] != "1" || string(m.Body) != "body" || m.Subject != queue.Subject(1) {
			t.Errorf("came as %+v", m)
		}
		if n < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	eventually(t, "the message is done", empty(t, c, queue.Subject(1)))
	if n := seen("m1"); n != 3 {
		t.Fatalf("it came %d times", n)
	}
}

func TestMessageInHandIsNotGivenToAnother(t *testing.T) {
	t.Parallel()
	c := queuetest.New(t).Connect()
	publish(t, c, message(1))
	seen := consuming(t, c, func(int, queue.Message) error {
		<-time.After(800 * time.Millisecond) // more than twice what a silent worker is given
		return nil
	})
	eventually(t, "the message came", func() bool { return seen("m1") > 0 })
	eventually(t, "the message is done", empty(t, c, queue.Subject(1)))
	if n := seen("m1"); n != 1 {
		t.Fatalf("it came %d times", n)
	}
}

func TestSameIDIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := queuetest.New(t).Connect()
	for range 3 {
		publish(t, c, message(1))
	}
	n, err := c.Waiting(t.Context(), queue.Subject(1))
	if n != 1 || err != nil {
		t.Fatalf("%d wait, %v", n, err)
	}
}

func TestFullStreamRefusesAndDropsNothing(t *testing.T) {
	t.Parallel()
	s := queuetest.New(t)
	c, err := queue.Connect(queue.Options{URL: s.URL, StreamBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	publish(t, c, message(0))
	big := func(n int) queue.Message {
		m := message(n)
		m.Subject, m.Body = queue.Subject(0), []byte(strings.Repeat("x", 10<<10))
		return m
	}
	taken := 1
	for ; taken < 100; taken++ {
		if err = c.Publish(t.Context(), big(taken)); err != nil {
			break
		}
	}
	if !fault.Is(err, fault.Unavailable) || taken > 7 {
		t.Fatalf("%d taken, then %v", taken, err)
	}
	if n, err := c.Waiting(t.Context(), queue.Subject(0)); err != nil || int(n) != taken {
		t.Fatalf("%d of %d wait, %v", n, taken, err)
	}
	consuming(t, c, func(int, queue.Message) error { return nil })
	publish(t, c, big(taken))
	eventually(t, "all are done", empty(t, c, queue.Subject(0)))
}

// TestAServerWithLittleRoomPassesOnWhatWorkersTake: the stream is smaller there,
// and as large as it should be when there is room again.
func TestAServerWithLittleRoomPassesOnWhatWorkersTake(t *testing.T) {
	t.Parallel()
	s := queuetest.NewStopped(t)
	s.Disk = 100 << 20
	s.Start()
	c := s.Connect()
	consuming(t, c, func(int, queue.Message) error { return nil })
	publish(t, c, message(1))
	eventually(t, "it is done", empty(t, c, queue.Subject(1)))
	s.Stop()
	s.Disk = 8 << 30
	s.Start()
	publish(t, c, message(2))
	if err := c.EnsureStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := js.Stream(t.Context(), "USAGE"); err != nil || is.CachedInfo().Config.MaxBytes != 1<<30 {
		t.Fatalf("%+v %v", is, err)
	}
}

func TestBothEndsFindAServerThatComesAndGoes(t *testing.T) {
	t.Parallel()
	s := queuetest.NewStopped(t)
	c, d := s.Connect(), s.Connect()
	if err := c.Publish(t.Context(), message(1)); !fault.Is(err, fault.Unavailable) || c.Connected() {
		t.Fatalf("without a server: %v", err)
	}
	seen := consuming(t, d, func(int, queue.Message) error { return nil })
	for n := range 3 {
		s.Start()
		publish(t, c, message(n))
		eventually(t, "the message came", func() bool { return seen(message(n).ID) > 0 })
		s.Stop()
		if n == 1 {
			s.Wipe() // the stream and its consumer are gone
		}
	}
}

// TestAServerThatNeverAnswersHoldsNobody: what was asked of a server that went
// away in that moment is asked again, also by callers who would wait for longer.
func TestAServerThatNeverAnswersHoldsNobody(t *testing.T) {
	t.Parallel()
	c := queuetest.NewMute(t).Connect()
	eventually(t, "it is connected", c.Connected)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked := map[string]func() error{
		"publish": func() error { return c.Publish(ctx, message(1)) },
		"stream":  func() error { return c.EnsureStream(ctx) },
		"waiting": func() error { _, err := c.Waiting(ctx, queue.Subject(1)); return err },
	}
	var all sync.WaitGroup
	for name, ask := range asked {
		all.Go(func() {
			if err := ask(); !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				t.Errorf("%s: %v, after the minute: %v", name, err, ctx.Err())
			}
		})
	}
	all.Wait()
}

func TestConnectionThatCanNeverWorkIsAnErrorWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := queue.Connect(queue.Options{URL: "nats://ann:pass word@[::1", Name: "test"})
	if err == nil || strings.Contains(err.Error(), "pass word") {
		t.Fatalf("got %v", err)
	}
	_, err = queue.Connect(queue.Options{URL: "nats://127.0.0.1:1", CredsFile: "/nowhere/at/all"})
	if err == nil {
		t.Fatal("a credentials file that is not there")
	}
}
