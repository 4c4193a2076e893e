package auth_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/tenants"
)

// secretOf is a well-formed secret that stands for a number.
func secretOf(n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := fmt.Sprintf("%s%030d", tenants.LivePrefix, n)
	sum := make([]byte, 6)
	for i, c := len(sum)-1, crc32.ChecksumIEEE([]byte(body)); i >= 0; i, c = i-1, c/62 {
		sum[i] = digits[c%62]
	}
	return body + string(sum)
}

// addKeys gives the customer so many keys at once.
func (r replicas) addKeys(n int) []string {
	r.t.Helper()
	secrets, hashes := make([]string, n), make([][]byte, n)
	for i := range secrets {
		secrets[i] = secretOf(i)
		hashes[i] = tenants.HashSecret(secrets[i])
	}
	const atOnce = 20_000
	for i := 0; i < n; i += atOnce {
		r.sql(`insert into api_keys (tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4)
			select $1, i, i, 'customer', $2, 'Key of a customer', h, 'aaaa', 'bbbb' from (select gen_random_uuid() i, h from unnest($3::bytea[]) h) s`,
			r.tenant, r.customer.ID, hashes[i:min(i+atOnce, n)])(r.t)
	}
	return secrets
}

func (r replicas) askAll(d *auth.Directory, secrets []string) {
	var group sync.WaitGroup
	const side = 16
	for w := range side {
		group.Go(func() {
			for i := w; i < len(secrets); i += side {
				if _, err := d.Caller(context.Background(), secrets[i], ""); err != nil {
					r.t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkHit is what finding a caller and its contract costs when both are
// remembered.
func BenchmarkHit(b *testing.B) {
	r := newReplicas(b)
	d := r.two[0]
	r.ask(d)
	for b.Loop() {
		c, err := d.Caller(b.Context(), r.key.Secret, "")
		if err != nil {
			b.Fatal(err)
		}
		contract, err := d.Contract(b.Context(), r.tenant, c.Key.Customer)
		if err != nil || len(c.Plan(contract)) != 3 {
			b.Fatal(err)
		}
	}
}

// BenchmarkActiveKeys is what keys that are used every second ask of the
// database each second, over a minute of injected time.
func BenchmarkActiveKeys(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newReplicas(b)
			d, secrets := r.two[0], r.addKeys(n)
			r.askAll(d, secrets)
			for b.Loop() {
				reads, looks := d.Reads(), 0
				const seconds = 60
				for range seconds {
					for range 4 {
						r.clock.advance(250 * time.Millisecond)
						r.catchUp(d)
						looks++
					}
					r.askAll(d, secrets)
				}
				b.ReportMetric(float64(d.Reads()-reads)/seconds, "reads/s")
				b.ReportMetric(float64(looks)/seconds, "looks/s")
			}
		})
	}
}

// BenchmarkMemory is what a remembered key weighs.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	r := newReplicas(b)
	d, secrets := r.newDirectory(), r.addKeys(n)
	for b.Loop() {
		before := heap()
		r.askAll(d, secrets)
		b.ReportMetric(float64(heap()-before)/n, "B/key")
	}
	runtime.KeepAlive(d)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
