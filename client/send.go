package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAnswer is the largest answer that is read: a batch of 500 with 20 limits
// each has room.
const maxAnswer = 16 << 20

// request is what one method sends, as often as it takes: always the same bytes.
type request struct {
	method, path string
	once         string // Idempotency-Key
	body         any    // nil: none
	maxWait      time.Duration
}

// send sends a request until it has an answer, and reads that into to.
func (c *Client) send(ctx context.Context, r request, to any) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return fmt.Errorf("weir: %w", err)
		}
	}
	began := c.now()
	for try := 0; ; try++ {
		err := c.try(ctx, r, body, to)
		if err == nil || ctx.Err() != nil || try >= c.retries {
			return err
		}
		wait, again := c.again(err, try, r.maxWait-c.now().Sub(began))
		if !again {
			return err
		}
		if ended := c.sleep(ctx, wait); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// again tells whether a failure may be gone after a while, and after how long.
// left is what remains of the time that the call may wait for room.
func (c *Client) again(err error, try int, left time.Duration) (wait time.Duration, again bool) {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return pause(refusal.RetryAfter, try), refusal.WaitHelps && refusal.RetryAfter <= left
	}
	var p *Problem
	if !errors.As(err, &p) {
		return pause(0, try), true // no answer came
	}
	if p.Status != http.StatusTooManyRequests && !errors.Is(p, ErrUnavailable) && p.Code != "idempotency_in_flight" {
		return 0, false
	}
	return pause(p.RetryAfter, try), p.RetryAfter <= c.maxPause
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r request, body []byte, to any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+r.maxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", "weir-go")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.once != "" {
		req.Header.Set("Idempotency-Key", r.once)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("weir: the answer ended early: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return failure(resp, raw)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("weir: an answer that cannot be read: %w", err)
	}
	return nil
}

// failure is the error of an answer; one that is not Weir's, but of something
// between, has its status at least.
func failure(resp *http.Response, raw []byte) error {
	var p problem
	if json.Unmarshal(raw, &p) != nil || p.Code == "" {
		p = problem{Code: "unknown", Detail: http.StatusText(resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	if p.RetryAfterMS == 0 {
		if seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
			p.RetryAfterMS = seconds * 1000
		}
	}
	return p.err()
}

// once is a new idempotency key.
func once() string { return rand.Text() }
