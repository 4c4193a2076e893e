package stack

import (
	"bytes"
	"strings"
	"sync"
)

// Log keeps what processes print. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// Tail is the end of it, for a failed test to show.
func (l *Log) Tail() string {
	s := l.String()
	return s[max(0, len(s)-8000):]
}

// Complaints are the lines that no run of the stack may print, whatever is
// asked of it: errors, panics, data races.
func (l *Log) Complaints() (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, "DATA RACE") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
