//go:build !race

package stack

// buildFlags build the binaries as the test itself was built.
var buildFlags []string
