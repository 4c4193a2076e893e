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
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l, ReplaceAttr: clip}))
}

func clip(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(err.Error())
		}
	}
	if a.Value.Kind() == slog.KindString && len(a.Value.String()) > MaxValue {
		a.Value = slog.StringValue(a.Value.String()[:MaxValue] + "…")
	}
	return a
}
