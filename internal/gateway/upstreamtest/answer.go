package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"weir/internal/catalogue/mimic"
)

var someWords = []string{"A", " weir", " holds", " a", " flow", "."}

func (u *Upstream) answer(w http.ResponseWriter, r *http.Request, c Call, s Script) {
	if s.Hang {
		u.hang(r)
	}
	if s.Hang || !u.wait(r, s.Delay) || !u.gate(r, s.Wait) {
		panic(http.ErrAbortHandler)
	}
	for name, values := range s.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if s.message != "" {
		s.Body = mimic.Error(c.Route(), s.Status, s.message)
	}
	if s.Body != "" {
		if s.echo != "" {
			s.Body = strings.ReplaceAll(s.Body, s.echo, c.key())
		}
		u.whole(w, r, s, "application/json", s.Body)
		return
	}
	call, reply, err := s.reply(c)
	switch {
	case err != nil:
		write(w, http.StatusBadRequest, mimic.Error(c.Route(), http.StatusBadRequest, err.Error()))
	case call.Stream:
		u.stream(w, r, s, call, reply)
	default:
		contentType, body := call.Whole(reply)
		u.whole(w, r, s, contentType, body)
	}
}

// reply is the call as it is understood, and what is said to it. An answer that
// is scripted needs no call that makes sense, but for JSON.
func (s Script) reply(c Call) (mimic.Call, mimic.Reply, error) {
	call, err := mimic.Read(c.Route(), c.Header.Get("Content-Type"), c.Body)
	if err != nil && (call.Model == "" || len(call.Parts) > 0) {
		return call, mimic.Reply{}, err
	}
	call.MaxOutput = -1 // what is said is the script's
	if s.Tool != "" {
		call = call.Calling(s.Tool)
	}
	words := s.Words
	if words == nil {
		words = someWords
	}
	reply := call.Honest(words, time.Unix(1764547200, 0))
	reply.ID, reply.Fails, reply.Usage = "test", s.Fails, s.usage(call, reply.Usage)
	return call, reply, nil
}

// wait pauses, and tells whether anybody still waits for the answer.
func (u *Upstream) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-u.closed:
	}
	return false
}

func (u *Upstream) gate(r *http.Request, open <-chan struct{}) bool {
	if open == nil {
		return true
	}
	select {
	case <-open:
		return true
	case <-r.Context().Done():
	case <-u.closed:
	}
	return false
}

func (u *Upstream) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-u.closed:
	}
}

func begin(w http.ResponseWriter, s Script, contentType string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentType)
	}
	if s.Status == 0 {
		s.Status = http.StatusOK
	}
	w.WriteHeader(s.Status)
}

func (u *Upstream) whole(w http.ResponseWriter, r *http.Request, s Script, contentType, body string) {
	if s.Gzip {
		body = compressed(body)
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	begin(w, s, contentType)
	if s.Cut+s.Stall > 0 {
		_, _ = io.WriteString(w, body[:len(body)/2])
		_ = http.NewResponseController(w).Flush() // a caller that left is noticed below
		if s.Stall > 0 {
			u.hang(r)
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, body)
}

func compressed(body string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, body) // memory
	_ = z.Close()
	return b.String()
}
