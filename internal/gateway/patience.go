package gateway

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/usage"
)

// maxWaitHeader is how a caller asks that a call waits for room in its plan
// instead of being refused, in milliseconds. Providers never see it.
const maxWaitHeader = "X-Weir-Max-Wait-Ms"

// routeWait is the longest that a call waits for room at its providers.
const routeWait = 5 * time.Second

// maxWait reads the header; absent or empty is no wait.
func maxWait(header string) (time.Duration, error) {
	if header == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(header, 10, 32)
	if err != nil || n > uint64(limits.MaxWait.Milliseconds()) {
		return 0, fault.New(fault.Invalid, "invalid_max_wait", strings.ToLower(maxWaitHeader)+" is a whole number of milliseconds from 0 to 60000.")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// mayWait tells whether the call asked to wait where there is no room.
func (k *caller) mayWait() bool { return k.echo.Request().Header.Get(maxWaitHeader) != "" }

// admit decides a call, which may wait for it. A wait ends with its client, and
// when the process is about to; its caller is held against what it may do by then.
// size is what its body takes meanwhile.
func (s *Server) admit(k *caller, call usage.Call, size int64) (limits.Decision, error) {
	var err error
	if call.MaxWait, err = maxWait(k.echo.Request().Header.Get(maxWaitHeader)); err != nil {
		return limits.Decision{}, err
	}
	if call.MaxWait == 0 {
		return s.Meter.Admit(k.ctx, call)
	}
	leave, room := s.waiting.enter(call.Tenant, size)
	if !room {
		call.MaxWait = 0
		return s.Meter.Admit(k.ctx, call)
	}
	defer leave()
	call.RouteWait = routeWait
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Halt, func() { cancel(errHalted) })()
	call.Renew = func(context.Context) ([]*limits.Set, error) {
		if err := s.identify(k); err != nil {
			return nil, err
		}
		return k.who.Plan(k.contract), nil
	}
	d, err := s.Meter.Admit(ctx, call)
	if err != nil && errors.Is(context.Cause(ctx), errHalted) {
		return d, halted()
	}
	return d, err
}
