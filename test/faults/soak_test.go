//go:build soak

package faults

import "testing"

// TestSoakTheBooksBalanceThroughFiftyKillsOfEverything is the long form.
func TestSoakTheBooksBalanceThroughFiftyKillsOfEverything(t *testing.T) {
	killUnderLoad(t, 50)
}
