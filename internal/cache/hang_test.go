package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/fault"
)

func TestADatabaseThatHangsHoldsUpNobodyWhoIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		c := New(Options[string]{Fresh: time.Second, Stale: 5 * time.Minute, Max: 10, Now: time.Now}, func(ctx context.Context, _ string) (string, error) {
			if hangs {
				<-ctx.Done()
				return "", fault.New(fault.Unavailable, "database_unavailable", "")
			}
			return "known", nil
		})
		if _, err := c.Get(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		hangs = true
		for range 3 { // a call asks three such caches, one after another
			time.Sleep(2 * time.Second) // of the bubble's clock
			began := time.Now()
			v, err := c.Get(t.Context(), "k")
			if took := time.Since(began); err != nil || v != "known" || took > time.Second {
				t.Errorf("%q, %v after %s", v, err, took)
			}
		}
		time.Sleep(10 * time.Second) // the last load gives up
	})
}
