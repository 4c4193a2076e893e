package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Answer is what a request got, whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON reads a member of the body by its path ("error.code", "data.0.id"); nil
// when it is not there.
func (a Answer) JSON(path string) any {
	var v any
	if json.Unmarshal(a.Body, &v) != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		switch t := v.(type) {
		case map[string]any:
			v = t[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

// Text is JSON for a member that is a string; "" when it is not.
func (a Answer) Text(path string) string {
	s, _ := a.JSON(path).(string)
	return s
}

func (a Answer) String() string {
	return fmt.Sprintf("%d %s", a.Status, bytes.TrimSpace(a.Body))
}

// Request makes a request with a key ("" for none) and a JSON body: nil for
// none, []byte and string as they are, everything else marshalled.
func (s *Stack) Request(ctx context.Context, method, path, key string, body any) (*http.Request, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.BaseURL()+path, r)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Do sends a request and reads its answer to the end. An answer that was cut
// comes with what arrived of it, beside the error.
func (s *Stack) Do(ctx context.Context, method, path, key string, body any) (Answer, error) {
	req, err := s.Request(ctx, method, path, key, body)
	if err != nil {
		return Answer{}, err
	}
	return s.Send(req)
}

// Send is Do for a request of one's own.
func (s *Stack) Send(req *http.Request) (Answer, error) {
	resp, err := s.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, raw}, err
}

// Call is Do for a request that must be answered.
func (s *Stack) Call(t testing.TB, method, path, key string, body any) Answer {
	t.Helper()
	a, err := s.Do(t.Context(), method, path, key, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Want is Call for a request that must be answered with this status.
func (s *Stack) Want(t testing.TB, status int, method, path, key string, body any) Answer {
	t.Helper()
	a := s.Call(t, method, path, key, body)
	if a.Status != status {
		t.Fatalf("%s %s: %s, want %d", method, path, a, status)
	}
	return a
}

// Admin runs `bin/api admin` against the stack and returns the JSON that it
// prints.
func (s *Stack) Admin(ctx context.Context, args ...string) (Answer, error) {
	bin, err := Bin()
	if err != nil {
		return Answer{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "api"), append([]string{"admin"}, args...)...)
	cmd.Env = s.environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return Answer{}, fmt.Errorf("api admin %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return Answer{Body: out}, nil
}
