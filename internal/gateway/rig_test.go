package gateway_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/boot"
	"weir/internal/config"
	"weir/internal/gateway"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/logging"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue/queuetest"
	"weir/internal/tenants"
	"weir/test/stack"
)

// Ceilings that a test can wait for.
var short = gateway.Timeouts{FirstByte: 1500 * time.Millisecond, Idle: 1500 * time.Millisecond, Total: 4 * time.Second, Drain: time.Second, Write: 300 * time.Millisecond, Again: 3 * time.Second, Look: 200 * time.Millisecond}

func TestMain(m *testing.M) {
	gateway.DefaultTimeouts = short
	_ = flag.Set("test.parallel", "8") // they wait for most of their time
	os.Exit(m.Run())
}

// rig is an API and a worker inside the test, with short ceilings, on a database
// and a bus of their own.
func rig(t *testing.T) *stack.Stack {
	t.Helper()
	return rigOf(t, rigged{}).Stack
}

// rigged is how a rig differs from others.
type rigged struct {
	env   []string
	now   func() time.Time // the API's clock; nil: the machine's
	falls bool             // its log may have errors
}

// running is a rig whose API can be stopped before its test ends.
type running struct {
	*stack.Stack

	stop func()
}

func rigOf(t *testing.T, o rigged) running {
	t.Helper()
	db, bus := postgrestest.New(t), queuetest.New(t)
	ring := keyring.NewKey("test")
	env := append([]string{
		"DATABASE_URL=" + db.AppURL, "WORKER_DATABASE_URL=" + db.WorkerURL, "NATS_URL=" + bus.URL, "PUBLIC_URL=http://127.0.0.1",
		"KEY_RING=" + ring, "EVENT_KEYS=" + keyring.NewKey("test"), "APP_KEYS=" + keyring.NewKey("test"),
		"SPOOL_DIR=" + filepath.Join(t.TempDir(), "spool"), "OUTBOUND_ALLOW_LOOPBACK=true", "LAME_DUCK=0s", "DRAIN=5s",
	}, o.env...)
	api, err := config.Load[config.API](env)
	if err != nil {
		t.Fatal(err)
	}
	worker, err := config.Load[config.Worker](env)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	printed := &stack.Log{}
	log := logging.New(printed, "info")
	ctx, stop := context.WithCancel(context.Background())
	mine, stopAPI := context.WithCancel(ctx)
	ended, ready := make(chan error, 2), make(chan struct{})
	a := boot.NewAPI(api, log)
	if o.now != nil {
		a.Now = o.now
	}
	a.OnReady = func() { close(ready) }
	go func() { ended <- a.Run(mine, l) }()
	go func() { ended <- boot.RunWorker(ctx, worker, nil, log) }()
	t.Cleanup(func() {
		stopAPI()
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		for _, line := range printed.Complaints() {
			if !o.falls {
				t.Errorf("the log: %s", line)
			}
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("it does not start: %v\n%s", err, printed)
	}
	keys, err := keyring.ParseRing(ring)
	if err != nil {
		t.Fatal(err)
	}
	service := tenants.New(db.App, keys, nil, nil, time.Now)
	return running{stack.Of(stack.Remote{
		BaseURL: "http://" + l.Addr().String(), SuperURL: db.SuperURL,
		Create: func(ctx context.Context, name, zone string) (stack.World, error) {
			name = name[strings.LastIndex(name, "/")+1:]
			c, err := service.Create(ctx, tenants.NewTenant{Name: name, OwnerEmail: fmt.Sprintf("owner%s@example.com", id.New()), Zone: zone})
			return stack.World{Tenant: id.Tenant.Format(c.Tenant.ID), ManagementKey: c.ManagementKey.Secret}, err
		},
	}), stopAPI}
}
