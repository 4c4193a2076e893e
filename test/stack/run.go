package stack

import (
	"fmt"
	"os"
	"testing"
)

// Run starts a stack with more settings ("NAME=value") for all tests of a
// package, hands it over, and runs them. It returns what TestMain exits with: also not 0 where the stack does not stop
// cleanly or has printed what none may print.
func Run(m *testing.M, use func(*Stack), env ...string) int {
	defer RemoveBin()
	s, err := New()
	if err != nil {
		return complain(err)
	}
	s.Env = env
	defer func() { _ = s.Remove() }() // what is left is in the system's folder for such things
	if err := s.Start(); err != nil {
		return complain(err)
	}
	use(s)
	code := m.Run()
	if err := s.Stop(); err != nil {
		return complain(err)
	}
	for _, line := range s.Log.Complaints() {
		code = complain(fmt.Errorf("the stack printed: %s", line))
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "stack:", err)
	return 1
}

// Fresh starts a stack for one test, which ends with it.
func Fresh(t testing.TB) *Stack {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the stack printed at last:\n%s", s.Log.Tail())
		}
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}
