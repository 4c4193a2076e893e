package gateway

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/usage"
)

// maxWaitHeader is how a caller asks that a call waits for room in its plan
// instead of being refused, in milliseconds. Providers never see it.
const maxWaitHeader = "x-weir-max-wait-ms"

// routeWait is the longest that a call waits for room at its providers.
const routeWait = 5 * time.Second

// maxWait reads the header; absent or empty is no wait.
func maxWait(header string) (time.Duration, error) {
	if header == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(header, 10, 32)
	if err != nil || n > uint64(limits.MaxWait.Milliseconds()) {
		return 0, fault.New(fault.Invalid, "invalid_max_wait", maxWaitHeader+" is a whole number of milliseconds from 0 to 60000.")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// admit decides a call, which may wait for it. A wait ends with its client, and
// when the process is about to.
func (s *Server) admit(k *caller, call usage.Call) (limits.Decision, error) {
	var err error
	if call.MaxWait, err = maxWait(k.echo.Request().Header.Get(maxWaitHeader)); err != nil {
		return limits.Decision{}, err
	}
	if call.MaxWait == 0 {
		return s.Meter.Admit(k.ctx, call)
	}
	call.RouteWait = routeWait
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Halt, func() { cancel(errHalted) })()
	began := s.Now()
	d, err := s.Meter.Admit(ctx, call)
	switch {
	case err != nil && context.Cause(ctx) == errHalted:
		return d, halted()
	case err != nil || !d.Admitted || s.Now().Sub(began) < time.Second:
		return d, err
	}
	return d, s.still(k, call.Tenant, d.Reservation.ID)
}

// still finds the caller again after a wait: a key that was revoked meanwhile
// makes no call, and what was reserved for it is given back.
func (s *Server) still(k *caller, tenant, reservation uuid.UUID) error {
	err := s.identify(k)
	if err != nil {
		_, _ = s.Meter.Cancel(context.WithoutCancel(k.ctx), tenant, reservation) // else it expires
	}
	return err
}
