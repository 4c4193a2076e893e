package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATSOptions say where a NATS server keeps its streams.
type NATSOptions struct {
	Dir string // created when absent
}

// NATS is a NATS server with JetStream inside this process.
type NATS struct {
	server *server.Server
	url    string
}

// StartNATS starts a server on a loopback port of its own and waits until it
// takes connections. Other processes reach it by URL, whose password is new at
// every start.
func StartNATS(o NATSOptions) (*NATS, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	user, password := "weir", rand.Text()
	s, err := server.NewServer(&server.Options{
		ServerName: "weir-dev",
		Host:       "127.0.0.1", Port: server.RANDOM_PORT,
		Username: user, Password: password,
		JetStream: true, StoreDir: o.Dir,
		NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	s.Start()
	n := &NATS{server: s}
	if !s.ReadyForConnections(10 * time.Second) {
		n.Stop()
		return nil, errors.New("nats server: it does not take connections within 10 s")
	}
	if !s.JetStreamEnabled() {
		n.Stop()
		return nil, fmt.Errorf("nats server: jetstream does not start in %s", o.Dir)
	}
	n.url = (&url.URL{Scheme: "nats", User: url.UserPassword(user, password), Host: s.Addr().String()}).String()
	return n, nil
}

// URL is how clients connect.
func (n *NATS) URL() string { return n.url }

// Stop ends the server and waits; what it stored is on disk then. Stopping
// twice is harmless.
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}
