// Package queuetest runs a NATS server with JetStream inside a test.
package queuetest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"weir/internal/queue"
)

// Server is one NATS server on a port of its own, with its store in a directory
// of the test. It can be stopped and started again on the same port and store.
type Server struct {
	URL  string
	Disk int64 // what streams may hold; set before Start

	t    testing.TB
	dir  string
	port int
	srv  *server.Server
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := NewStopped(t)
	s.Start()
	return s
}

// NewStopped is a server that has an address but does not run yet.
func NewStopped(t testing.TB) *Server {
	t.Helper()
	port := freePort(t)
	s := &Server{t: t, dir: filepath.Join(t.TempDir(), "nats"), port: port, Disk: 8 << 30, URL: fmt.Sprintf("nats://127.0.0.1:%d", port)}
	t.Cleanup(s.Stop)
	return s
}

// NewMute is a server that takes every question and answers none, as one does
// that goes away just then.
func NewMute(t testing.TB) *Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	s := &Server{t: t, srv: srv, URL: srv.ClientURL()}
	t.Cleanup(s.Stop)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, subject := range []string{"$JS.API.>", "usage.v1.*"} {
		if _, err := nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return s
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return int(at.Port())
}

// Start runs the server on what its store holds.
func (s *Server) Start() {
	s.t.Helper()
	srv, err := start(s.dir, s.port, s.Disk)
	if err != nil {
		s.t.Fatal(err)
	}
	s.srv = srv
}

func start(dir string, port int, disk int64) (*server.Server, error) {
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir,
		NoSigs: true, NoLog: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: disk,
	})
	if err != nil {
		return nil, err
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("queuetest: the server did not come up within 10 s")
	}
	return srv, nil
}

// Serve starts a server on any port that runs as long as the process: for one
// that is nothing else, so that what it takes is not counted to a test.
func Serve(dir string) (url string, err error) {
	srv, err := start(dir, server.RANDOM_PORT, 8<<30)
	if err != nil {
		return "", err
	}
	return srv.ClientURL(), nil
}

// Stop ends the server; its store stays.
func (s *Server) Stop() {
	if s.srv != nil {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		s.srv = nil
	}
}

// Wipe forgets everything that a stopped server stored.
func (s *Server) Wipe() {
	s.t.Helper()
	if s.srv != nil {
		s.t.Fatal("queuetest: wiping a server that runs")
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
}

// DeleteStream has the running server forget the stream of events, with all that
// waits in it and with its consumers, as an operator's hand would.
func (s *Server) DeleteStream() {
	s.t.Helper()
	nc, err := nats.Connect(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.DELETE.USAGE", nil, 10*time.Second); err != nil {
		s.t.Fatal(err)
	}
}

// Connect is a connection that ends with the test.
func (s *Server) Connect() *queue.Conn {
	s.t.Helper()
	c, err := queue.Connect(queue.Options{URL: s.URL, Name: "test", StreamBytes: 1 << 30})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}
