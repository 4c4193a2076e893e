package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/fault"
)

// Options say where the server is and who we are to it.
type Options struct {
	URL       string // one or several addresses, comma separated
	Name      string // shown in the server's list of connections
	User      string
	Password  string
	CredsFile string // a NATS credentials file, instead of user and password

	StreamBytes int64 // the most that waits on the server's disk, where it has that much; 0: 4 GiB
	Replicas    int   // copies of the stream in a cluster; 0: 1
}

// Conn is a connection that is made again for ever. It is safe for concurrent
// use.
type Conn struct {
	nc *nats.Conn
	js jetstream.JetStream
	o  Options
}

// Message is one run of events on its way. ID is what the server's duplicate
// window compares.
type Message struct {
	Subject string
	ID      string
	Header  map[string]string
	Body    []byte
}

// Connect returns at once, also when no server answers yet: it keeps trying. It
// fails only for options that can never work.
func Connect(o Options) (*Conn, error) {
	if o.StreamBytes == 0 {
		o.StreamBytes = 4 << 30
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	nc, err := nats.Connect(o.URL, options(o)...)
	if err != nil {
		return nil, errors.New("queue: the NATS address or credentials cannot be used")
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Conn{nc: nc, js: js, o: o}, nil
}

// options never buffer for a server that is away: the sender has its own disk.
func options(o Options) []nats.Option {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
	}
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if o.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	}
	return opts
}

// Close ends the connection after what was acknowledged has been sent.
func (c *Conn) Close() {
	_ = c.nc.FlushTimeout(time.Second)
	c.nc.Close()
}

// Connected tells whether a server answers right now.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

func unavailable(err error) error {
	return fault.New(fault.Unavailable, "queue_unavailable", "The message queue cannot be reached right now.").Because(err)
}
