//go:build soak

package limits_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// mostAdded is by how much a sick Redis may hold decisions up, at the 99th
// percentile.
const mostAdded = 30 * time.Millisecond

func TestSoakUnderLoadEveryModeKeepsItsBoundThroughEveryTrouble(t *testing.T) {
	for _, o := range troubles {
		t.Run(o.name, func(t *testing.T) {
			for range 5 {
				if added := endures(t, o, rand.Uint64(), 25*time.Millisecond, 4*time.Second); added > mostAdded {
					t.Errorf("decisions take %v longer at the 99th percentile", added)
				}
			}
		})
	}
}
