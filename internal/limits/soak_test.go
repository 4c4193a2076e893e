//go:build soak

package limits_test

import (
	"testing"

	"weir/internal/limits/limitstest"
)

func TestSoakMemory(t *testing.T) { limitstest.Soak(t, open, allZones(t), 50) }
