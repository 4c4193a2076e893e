package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	stream   = "USAGE"
	subjects = "usage.v1.*"

	// MaxBody is the largest body of a message.
	MaxBody = 768 << 10

	maxMessage      = 1 << 20
	leastBytes      = 64 << 20
	duplicateWindow = 2 * time.Minute

	// answerTime is how long an answer is waited for, whatever the caller's ctx
	// says: what was asked of a server that went away in that moment is answered
	// by nobody, and the one that comes after it knows nothing of it.
	answerTime = 5 * time.Second
)

// What the server answers when a stream may grow beyond its disk or its account.
const (
	insufficientResources jetstream.ErrorCode = 10023
	storageExceeded       jetstream.ErrorCode = 10047
)

// Subject is where the events of a shard go.
func Subject(shard int) string { return fmt.Sprintf("usage.v1.%d", shard) }

// EnsureStream makes the stream as it must be, or corrects it; it is called by
// both ends, whenever they find it missing.
//
// Retention is that of a work queue: a message goes when a worker acknowledges
// it, so the stream holds only what waits, and a full stream (which refuses new
// messages) means that workers are behind and nothing else. History is kept by
// the instances and by Postgres, not here.
func (c *Conn) EnsureStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	want := jetstream.StreamConfig{
		Name:       stream,
		Subjects:   []string{subjects},
		Retention:  jetstream.WorkQueuePolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardNew,
		MaxBytes:   c.o.StreamBytes,
		MaxMsgSize: maxMessage,
		Duplicates: duplicateWindow,
		Replicas:   c.o.Replicas,
	}
	s, err := c.js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		err = fitting(want, leastBytes, func(w jetstream.StreamConfig) error {
			_, err := c.js.CreateStream(ctx, w) // one that was made meanwhile is as good
			return err
		})
	case err == nil && differs(s.CachedInfo().Config, want):
		err = fitting(want, min(want.MaxBytes, s.CachedInfo().Config.MaxBytes), func(w jetstream.StreamConfig) error {
			_, err := c.js.UpdateStream(ctx, w)
			return err
		})
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// fitting asks for the stream, and where the server has not that much room, for
// half of it, and so on, down to least: a server whose disk is nearly full still
// passes on what workers take. The next call of EnsureStream asks for all again.
func fitting(want jetstream.StreamConfig, least int64, ask func(jetstream.StreamConfig) error) error {
	for {
		err := ask(want)
		if !noRoom(err) || want.MaxBytes <= least {
			return err
		}
		want.MaxBytes = max(want.MaxBytes/2, least)
	}
}

func noRoom(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == storageExceeded || api.ErrorCode == insufficientResources)
}

// differs tells whether a stream is not as it must be. An update that changes
// nothing is not asked for: the server does work for it.
func differs(is, want jetstream.StreamConfig) bool {
	return !slices.Equal(is.Subjects, want.Subjects) || is.Retention != want.Retention || is.Discard != want.Discard ||
		is.MaxBytes != want.MaxBytes || is.MaxMsgSize != want.MaxMsgSize || is.Duplicates != want.Duplicates || is.Replicas != want.Replicas
}

// Waiting is how many messages of a subject no worker has finished; 0 when the
// stream does not exist.
func (c *Conn) Waiting(ctx context.Context, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, err := c.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, unavailable(err)
	}
	return info.State.Subjects[subject], nil
}
