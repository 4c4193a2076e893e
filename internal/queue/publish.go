package queue

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Publish returns nil when the server has stored the message, or had it already
// within the duplicate window. Any error (no server, no stream, stream full, no
// answer within five seconds or before ctx ends) leaves open whether it was
// stored: send it again under the same ID.
func (c *Conn) Publish(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	msg := nats.NewMsg(m.Subject)
	msg.Data = m.Body
	for k, v := range m.Header {
		msg.Header[k] = []string{v}
	}
	_, err := c.js.PublishMsg(ctx, msg, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(stream), jetstream.WithRetryAttempts(0))
	if err != nil {
		return unavailable(err)
	}
	return nil
}
