package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/usage"
)

// outBooks are books that do not answer.
type outBooks struct{}

func (outBooks) EventByID(context.Context, uuid.UUID, uuid.UUID) (usage.Event, error) {
	return usage.Event{}, fault.New(fault.Unavailable, "metering_unavailable", "The books do not answer.")
}

// TestABeatReadsNothingOfTheAnswer: a beat that fails names the request while the
// handler writes the answer's headers.
func TestABeatReadsNothingOfTheAnswer(t *testing.T) {
	s := New(Deps{Now: time.Now, Log: slog.New(slog.DiscardHandler), Meter: usage.NewMeter(nil, nil, outBooks{}, slog.New(slog.DiscardHandler), time.Now)})
	c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
	b := &pulse{s: s, x: &exchange{s: s, k: &caller{echo: c}}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 2_000 {
			b.beat()
		}
	}()
	h := c.Response().Header()
	for i := 0; ; i++ {
		select {
		case <-ended:
			return
		default:
			h.Set(fmt.Sprint("X-", i%40), "written by open")
			h.Del(fmt.Sprint("X-", (i+20)%40))
		}
	}
}
