//go:build soak

package pipeline

import "testing"

// TestSoakNothingIsLostOrDoubledWhateverIsKilled is the long form.
func TestSoakNothingIsLostOrDoubledWhateverIsKilled(t *testing.T) { killEach(t, 220, 1_000_000) }
