package web

import (
	"strconv"
	"strings"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/web/ui"
)

// limitRow is a limit as a row of a form.
type limitRow struct {
	Dimension, Amount, Window, Burst, Models ui.Input
	Each                                     bool
	EachName                                 string
	Holds, Policy, Mode, Outage              ui.Input
	Weights                                  []ui.Input // of what is counted in tokens
	Finer                                    string     // what is set of these, in words; "" all is as usual
	FinerWrong                               bool       // something of these is not right
	Error                                    string     // of the row as a whole
}

// maxRows is how many rows of limits or prices a form has at the most.
const maxRows = 40

var dimensionOptions = []ui.Option{
	{Value: "requests", Label: "requests"},
	{Value: "tokens", Label: "tokens"},
	{Value: "input_tokens", Label: "input tokens"},
	{Value: "output_tokens", Label: "output tokens"},
	{Value: "units", Label: "units"},
	{Value: "spend", Label: "spend"},
	{Value: "concurrency", Label: "requests at once"},
}

var windowOptions = []ui.Option{{Value: "minute", Label: "minute"}, {Value: "day", Label: "day"}, {Value: "rolling_day", Label: "any 24 hours"}, {Value: "month", Label: "month"}, {Value: "none", Label: "at once"}}

func row(list string, i int, member string) string {
	return list + "." + strconv.Itoa(i) + "." + member
}

// rows is how many rows of a list were sent.
func (f form) rows(list, member string) int {
	n := 0
	for n < maxRows && f.Has(row(list, n, member)) {
		n++
	}
	return n
}

// limitRows are the rows to show: those that were sent, and at least some.
func (f form) limitRows(least int) (out []limitRow) {
	for i := range min(maxRows, max(least, f.rows("limits", "amount"))) {
		out = append(out, f.limitRow(i))
	}
	return out
}

func (f form) limitRow(i int) limitRow {
	n := strconv.Itoa(i + 1)
	in := func(member, says string) ui.Input {
		x := f.input(row("limits", i, member), "")
		x.Label2 = "Limit " + n + ", " + says
		return x
	}
	r := limitRow{
		Dimension: in("dimension", "what it counts"), Amount: in("amount", "amount"), Window: in("window", "per"), Burst: in("burst", "burst"), Models: in("models", "models"),
		EachName: row("limits", i, "each_model"), Each: f.Get(row("limits", i, "each_model")) != "", Error: f.Error("limits."+strconv.Itoa(i)) + f.Error(row("limits", i, "weights")),
	}
	r.Amount.InputMode, r.Amount.Class = "decimal", "num"
	r.Burst.InputMode, r.Burst.Class, r.Burst.Placeholder = "numeric", "num", "as amount"
	r.Models.Class, r.Models.Placeholder = "mono", "every model"
	r.Dimension.Options = ui.Choose(r.Dimension.Value, append([]ui.Option{}, dimensionOptions...)...)
	r.Window.Options = ui.Choose(r.Window.Value, append([]ui.Option{}, windowOptions...)...)
	finer(&r, in)
	return r
}

// put writes a limit into a row of the form.
func (f form) put(i int, l limits.Limit) {
	set := func(member, value string) { f.Set(row("limits", i, member), value) }
	set("dimension", string(l.Dimension))
	set("window", string(l.Window))
	set("amount", amountOf(l.Dimension, l.Amount))
	set("models", strings.Join(l.Models, ", "))
	set("burst", "")
	if l.Burst > 0 {
		set("burst", ui.Count(l.Burst))
	}
	if l.EachModel {
		set("each_model", "true")
	}
	f.putFiner(i, l)
}

// limits reads the rows that have an amount, and which row each limit came
// from. An empty amount is no limit. What is no number is noted in the form.
func (f *form) limits() (list []limits.Limit, from []int) {
	for i := range f.rows("limits", "amount") {
		if strings.TrimSpace(f.Get(row("limits", i, "amount"))) == "" {
			continue
		}
		l := limits.Limit{
			Dimension: limits.Dimension(f.Get(row("limits", i, "dimension"))), Window: limits.Window(f.Get(row("limits", i, "window"))),
			Models: f.words(row("limits", i, "models")), EachModel: f.Get(row("limits", i, "each_model")) != "",
		}
		l.Amount = f.amount(l.Dimension, row("limits", i, "amount"))
		if l.Dimension == limits.DimensionConcurrency {
			l.Window = limits.WindowNone
		}
		f.readFiner(i, &l)
		if strings.TrimSpace(f.Get(row("limits", i, "burst"))) != "" {
			l.Burst = f.whole(row("limits", i, "burst"))
		}
		list, from = append(list, l), append(from, i)
	}
	return list, from
}

var separators = strings.NewReplacer(",", "", " ", "", "_", "", "\u00a0", "", "\u202f", "", "'", "", "’", "")

// whole reads a whole number with or without separators of thousands.
func (f *form) whole(name string) int64 {
	n, err := strconv.ParseInt(separators.Replace(f.Get(name)), 10, 64)
	if err != nil {
		f.wrong(name, "This is not a whole number such as 200,000.")
		return 0
	}
	return n
}

// amount reads how much of a dimension: of spend, whole currency with decimals,
// kept in micro-units; of all else, a whole number.
func (f *form) amount(d limits.Dimension, name string) int64 {
	if d != limits.DimensionSpend {
		return f.whole(name)
	}
	n, err := parseMicros(f.Get(name))
	if err != nil {
		f.wrong(name, "This is not an amount of money such as 250.00, with at most six decimals.")
	}
	return n
}

// amountOf writes how much of a dimension, as amount reads it.
func amountOf(d limits.Dimension, n int64) string {
	if d == limits.DimensionSpend {
		return micros(n)
	}
	return ui.Count(n)
}

// rowed moves what a fault says of the n-th member of a list to the row that it
// was typed in.
func rowed(err error, list string, from []int) error {
	e := fault.Of(err)
	if err == nil || e.Fields == nil {
		return err
	}
	moved := *e
	moved.Fields = nil
	for _, x := range e.Fields {
		parts := strings.SplitN(x.Pointer, "/", 4)
		if len(parts) >= 3 && parts[1] == list {
			if n, err := strconv.Atoi(parts[2]); err == nil && n >= 0 && n < len(from) {
				parts[2] = strconv.Itoa(from[n])
				x.Pointer = strings.Join(parts, "/")
			}
		}
		moved.Fields = append(moved.Fields, x)
	}
	return &moved
}

// another is the form with one more empty row of limits.
func (f form) another() form {
	if i := f.rows("limits", "amount"); i < maxRows {
		f.put(i, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay})
		f.Set(row("limits", i, "amount"), "")
	}
	return f
}
