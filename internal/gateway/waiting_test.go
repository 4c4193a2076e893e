package gateway

import (
	"testing"

	"weir/internal/id"
)

// TestBodiesOfCallsThatWaitTakeABoundedPartOfMemory, and those of one tenant leave
// room for others'.
func TestBodiesOfCallsThatWaitTakeABoundedPartOfMemory(t *testing.T) {
	w := newWaiting()
	var leave []func()
	var all, most int64
	for range 10 {
		tenant := id.New()
		var mine int64
		for {
			out, ok := w.enter(tenant, bodyLimit)
			if !ok {
				break
			}
			leave = append(leave, out)
			mine += bodyLimit
		}
		all, most = all+mine, max(most, mine)
	}
	if all > mostWaiting || all < mostWaiting/2 || most > mostTenantWaiting || most == 0 {
		t.Errorf("%d MiB wait, of one tenant %d", all>>20, most>>20)
	}
	for _, out := range leave {
		out()
	}
	if w.all != 0 || len(w.by) != 0 {
		t.Errorf("with nobody left %d bytes of %d tenants wait", w.all, len(w.by))
	}
}
