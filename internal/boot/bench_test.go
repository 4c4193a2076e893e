package boot_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/boot"
	"weir/internal/config"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/logging"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
	"weir/test/stack"
)

// TestMain is the other side of the benchmark too: a client in a process of its
// own, so that what is measured here is the server alone.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "load" {
		if err := load(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && sides[os.Args[1]] != nil {
		if err := sides[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const callers = 16

// load sends a request so many times over connections that stay open.
func load(addr, request, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	wrong := make(chan error, callers)
	for range callers {
		go func() { wrong <- loadOne(addr, request, n/callers) }()
	}
	for range callers {
		err = errors.Join(err, <-wrong)
	}
	return err
}

func loadOne(addr, request string, n int) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	r, raw := bufio.NewReader(c), []byte(request)
	for range n {
		if _, err := c.Write(raw); err != nil {
			return err
		}
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, a.Body)
		if err = errors.Join(err, a.Body.Close()); err != nil || a.StatusCode > 299 {
			return fmt.Errorf("status %d, %w", a.StatusCode, err)
		}
	}
	return nil
}

// api is an API process inside the benchmark, on a database and a bus of its
// own, with the room that its main makes. It logs what it would in production, to
// nowhere.
func api(b *testing.B) (*stack.Stack, string) {
	b.Helper()
	db := postgrestest.New(b)
	bus, stopBus := side(b, "bus", b.TempDir())
	b.Cleanup(stopBus)
	ring := keyring.NewKey("bench")
	cfg, err := config.Load[config.API]([]string{
		"DATABASE_URL=" + db.AppURL, "NATS_URL=" + bus, "PUBLIC_URL=http://127.0.0.1",
		"KEY_RING=" + ring, "EVENT_KEYS=" + keyring.NewKey("bench"), "APP_KEYS=" + keyring.NewKey("bench"),
		"SPOOL_DIR=" + filepath.Join(b.TempDir(), "spool"), "OUTBOUND_ALLOW_LOOPBACK=true", "LAME_DUCK=0s", "DRAIN=5s",
	})
	if err != nil {
		b.Fatal(err)
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	l := listen(b)
	a, ready, ended := boot.NewAPI(cfg, logging.New(nowhere, "info")), make(chan struct{}), make(chan error, 1)
	a.OnReady = func() { close(ready) }
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- a.Run(ctx, l) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	<-ready
	boot.MakeRoom()
	keys, err := keyring.ParseRing(ring)
	if err != nil {
		b.Fatal(err)
	}
	service := tenants.New(db.App, keys, nil, nil, time.Now)
	return stack.Of(stack.Remote{
		BaseURL: "http://" + l.Addr().String(), SuperURL: db.SuperURL,
		Create: func(ctx context.Context, _, zone string) (stack.World, error) {
			c, err := service.Create(ctx, tenants.NewTenant{Name: "Bench", OwnerEmail: "ann@example.com", Zone: zone})
			return stack.World{Tenant: id.Tenant.Format(c.Tenant.ID), ManagementKey: c.ManagementKey.Secret}, err
		},
	}), l.Addr().String()
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// constant is an Echo handler that answers a JSON that it was given.
func constant(b *testing.B, answer []byte) string {
	b.Helper()
	e, l := echo.New(), listen(b)
	e.POST("/v1/reservations", func(c echo.Context) error {
		return c.JSONBlob(http.StatusCreated, answer)
	})
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Second}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() { _ = server.Close(); group.Wait() })
	return l.Addr().String()
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is the CPU of a request, as a server.
func cost(b *testing.B, addr, request string, n int) time.Duration {
	b.Helper()
	before := cpu(b)
	out, err := exec.CommandContext(b.Context(), os.Args[0], "load", addr, request, strconv.Itoa(n)).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return (cpu(b) - before) / time.Duration(n)
}

// BenchmarkReservations is the CPU of POST /v1/reservations, authenticated,
// over one of an Echo handler that answers a constant JSON: the two alternate.
func BenchmarkReservations(b *testing.B) {
	s, ours := api(b)
	w := s.Setup(b, stack.Options{Plan: []stack.Limit{
		{Dimension: "requests", Window: "minute", Amount: 1_000_000_000},
		{Dimension: "tokens", Window: "minute", Amount: 1_000_000_000},
		{Dimension: "tokens", Window: "day", Amount: 1_000_000_000_000},
	}})
	body := `{"model": "gpt-4o", "estimate": {"input_tokens": 1200, "output_tokens": 800}}`
	answer := s.Want(b, 201, "POST", "/v1/reservations", w.Key, body).Body
	request := strings.Join([]string{
		"POST /v1/reservations HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer " + w.Key, "Content-Type: application/json",
		"Content-Length: " + strconv.Itoa(len(body)), "", body,
	}, "\r\n")
	theirs := constant(b, answer)
	const n = 20_000
	cost(b, ours, request, n/10)
	cost(b, theirs, request, n/10)
	for b.Loop() {
		var peer, mine time.Duration
		for range 3 {
			peer += cost(b, theirs, request, n)
			mine += cost(b, ours, request, n)
		}
		b.ReportMetric(float64(peer.Microseconds())/3, "peer-µs")
		b.ReportMetric(float64(mine.Microseconds())/3, "µs")
		b.ReportMetric(float64(mine)/float64(peer), "times-peer")
	}
}
