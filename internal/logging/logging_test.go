package logging_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/internal/logging"
)

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("(hidden)" + strings.Repeat("x", 5000)) }

// TestNoTextOfALineIsLongerThanItMayBe: wherever it stands, and whatever it is
// made from.
func TestNoTextOfALineIsLongerThanItMayBe(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 5000)
	var out bytes.Buffer
	log := logging.New(&out, "info").With("with", long, "failed", errors.New(long))
	log.Info(long, "plain", long, "n", 7, "error", errors.New(long), "secret", secret{}, slog.Group("inside", "text", long, "none", nil))
	log.WithGroup("deeper").Info("short", "text", long)
	most := 0
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line[:100])
		}
		most = max(most, longest(v))
	}
	if want := logging.MaxValue + len("…"); most != want {
		t.Errorf("the longest text has %d bytes, want %d", most, want)
	}
}

func longest(v any) (n int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case map[string]any:
		for _, x := range v {
			n = max(n, longest(x))
		}
	}
	return n
}

// TestALineSaysWhatItWasGiven: errors by their words, levels by their names.
func TestALineSaysWhatItWasGiven(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := logging.New(&out, "warn")
	log.Info("not written")
	log.Warn("written", "error", errors.New("it broke"), "n", 7, "on", true)
	_, rest, _ := strings.Cut(out.String(), `,`)
	if want := `"level":"WARN","msg":"written","error":"it broke","n":7,"on":true}` + "\n"; rest != want {
		t.Errorf("written: %s, want %s", rest, want)
	}
}
