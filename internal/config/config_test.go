package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(t reflect.Type) (out []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, names(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		out = append(out, name)
	}
	return out
}

func TestTheExampleEnvironmentListsExactlyTheSettings(t *testing.T) {
	var want []string
	for _, v := range []any{API{}, Worker{}, Migrate{}} {
		want = append(want, names(reflect.TypeOf(v))...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	raw, err := os.ReadFile("../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestWhatIsMissingOrWrongIsNamedWithoutItsValue(t *testing.T) {
	_, err := Load[API]([]string{"NATS_URL=nats://x", "EVENT_KEYS=k:canary", "DATABASE_URL=", "SPOOL_SYNC=canary", "TRUSTED_PROXIES=canary"})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"PUBLIC_URL is not set", "KEY_RING is not set", "DATABASE_URL is empty", "the value of SPOOL_SYNC", "the value of TRUSTED_PROXIES"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("it repeats a value: %v", err)
	}
}

func TestSettingsAreRead(t *testing.T) {
	c, err := Load[API]([]string{
		"NATS_URL=nats://x", "EVENT_KEYS=k:a", "DATABASE_URL=postgres://y", "PUBLIC_URL=https://w", "KEY_RING=k:b", "APP_KEYS=k:z", "SPOOL_DIR=/s",
		"TRUSTED_PROXIES=10.0.0.0/8,192.0.2.0/24", "OUTBOUND_PORTS=8443,9443", "LAME_DUCK=0s",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != ":8080" || len(c.Proxies) != 2 || len(c.OutboundPorts) != 2 || c.LameDuck != 0 || c.DatabaseMax != 20 {
		t.Fatalf("got %+v", c)
	}
}
