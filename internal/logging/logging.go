// Package logging makes the one logger of a process: JSON lines on a writer.
package logging

import (
	"io"
	"log/slog"
	"strings"
)

// MaxValue is the longest text that one attribute may hold; the rest is cut, so
// that no caller can flood a line.
const MaxValue = 1024

// New makes a logger that writes records of a level ("debug", "info", "warn",
// "error"; anything else is info) and above.
func New(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(clipping{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})})
}
