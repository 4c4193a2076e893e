package gateway

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"weir/internal/gateway/wire"
)

// TestTheLargestBodyTakesAFewTimesItsSize has bodies just under the limit parsed
// and estimated, made of as many values as fit.
func TestTheLargestBodyTakesAFewTimesItsSize(t *testing.T) {
	const size = bodyLimit / 8 // the same per byte, and kinder to the machine
	for name, one := range map[string]string{"numbers": "0", "objects": `{"a":0}`, "lists": "[]"} {
		body := `{"model":"m","messages":[` + strings.Repeat(one+",", size/(len(one)+1)) + one + `]}`
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call, err := parse(echo.New().NewContext(r, httptest.NewRecorder()), formAt(wire.Chat))
		if err == nil {
			call.estimate(nil, nil, known{})
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 10*uint64(len(body)) {
			t.Errorf("%s: a body of %d MiB takes %d MiB, %d times its size, before any limit is asked", name, len(body)>>20, took>>20, took/uint64(len(body)))
		}
	}
}
