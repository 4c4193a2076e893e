package logging

import (
	"context"
	"log/slog"
	"slices"
)

// clipping cuts long texts before they are written. It looks at each value once
// and touches only what is too long: nearly no line is.
type clipping struct{ slog.Handler }

func (h clipping) Handle(ctx context.Context, r slog.Record) error {
	long := len(r.Message) > MaxValue
	r.Attrs(func(a slog.Attr) bool {
		long = long || tooLong(a.Value)
		return !long
	})
	if !long {
		return h.Handler.Handle(ctx, r)
	}
	short := slog.NewRecord(r.Time, r.Level, cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(clip(a))
		return true
	})
	return h.Handler.Handle(ctx, short)
}

func (h clipping) WithAttrs(list []slog.Attr) slog.Handler {
	list = slices.Clone(list)
	for i, a := range list {
		list[i] = clip(a)
	}
	return clipping{h.Handler.WithAttrs(list)}
}

func (h clipping) WithGroup(name string) slog.Handler { return clipping{h.Handler.WithGroup(name)} }

// tooLong tells whether clip would change a value.
func tooLong(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindString:
		return len(v.String()) > MaxValue
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindTime, slog.KindUint64:
		return false
	}
	return true // to be looked at
}

func clip(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(cut(a.Value.String()))
	case slog.KindGroup:
		list := slices.Clone(a.Value.Group())
		for i := range list {
			list[i] = clip(list[i])
		}
		a.Value = slog.GroupValue(list...)
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(cut(err.Error()))
		}
	}
	return a
}

func cut(s string) string {
	if len(s) <= MaxValue {
		return s
	}
	return s[:MaxValue] + "…"
}
