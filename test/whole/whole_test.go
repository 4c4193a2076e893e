// Package whole holds tests of the whole installation that share one running
// stack. Each test has tenants of its own, so that none sees another's.
package whole

import (
	"fmt"
	"os"
	"testing"
	"time"

	"weir/test/stack"
)

var weir *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Run(m, func(s *stack.Stack) { weir = s }, "LOG_LEVEL=debug")) // for the search for secrets
}

// patience is how long what takes a moment may take on a busy machine.
const patience = 20 * time.Second

// chat is a body of a chat completion.
func chat(model string) string {
	return fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "What is a weir?"}]}`, model)
}
