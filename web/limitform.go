package web

import (
	"encoding/json"
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
	Extra, ExtraName                         string // what the form does not show, kept as it is
	ExtraWords                               string
	Error                                    string // of the row as a whole
}

// extra is what a limit says beside the fields of a form. It comes along
// unchanged, so that editing one figure loses nothing.
type extra struct {
	Policy  limits.Policy          `json:"policy,omitempty"`
	Weights map[limits.Class]int64 `json:"weights,omitempty"`
	Outage  limits.Outage          `json:"outage,omitempty"`
	Mode    limits.Mode            `json:"mode,omitempty"`
}

// maxRows is how many rows of limits or prices a form has at the most.
const maxRows = 40

var dimensionOptions = []ui.Option{
	{Value: "requests", Label: "requests"},
	{Value: "tokens", Label: "tokens"},
	{Value: "input_tokens", Label: "input tokens"},
	{Value: "output_tokens", Label: "output tokens"},
	{Value: "units", Label: "units"},
	{Value: "spend", Label: "millionths of spend"},
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
		EachName: row("limits", i, "each_model"), Each: f.Get(row("limits", i, "each_model")) != "", Error: f.Error("limits." + strconv.Itoa(i)),
		Extra: f.Get(row("limits", i, "extra")), ExtraName: row("limits", i, "extra"),
	}
	r.ExtraWords = f.extra(i).words()
	for _, hidden := range []string{"policy", "weights", "outage", "mode"} {
		r.Error += f.Error(row("limits", i, hidden))
	}
	r.Amount.InputMode, r.Amount.Class = "numeric", "num"
	r.Burst.InputMode, r.Burst.Class, r.Burst.Placeholder = "numeric", "num", "as amount"
	r.Models.Class, r.Models.Placeholder = "mono", "every model"
	r.Dimension.Options = ui.Choose(r.Dimension.Value, append([]ui.Option{}, dimensionOptions...)...)
	r.Window.Options = ui.Choose(r.Window.Value, append([]ui.Option{}, windowOptions...)...)
	return r
}

// put writes a limit into a row of the form.
func (f form) put(i int, l limits.Limit) {
	set := func(member, value string) { f.Set(row("limits", i, member), value) }
	set("dimension", string(l.Dimension))
	set("window", string(l.Window))
	set("amount", ui.Count(l.Amount))
	set("models", strings.Join(l.Models, ", "))
	set("burst", "")
	if l.Burst > 0 {
		set("burst", ui.Count(l.Burst))
	}
	if l.EachModel {
		set("each_model", "true")
	}
	kept, err := json.Marshal(extra{l.Policy, l.Weights, l.Outage, l.Mode})
	if err == nil && string(kept) != "{}" {
		set("extra", string(kept))
	}
}

func (f form) extra(i int) (x extra) {
	_ = json.Unmarshal([]byte(f.Get(row("limits", i, "extra"))), &x) // what was tampered with is nothing
	return x
}

// words say what is not to be seen in the fields.
func (x extra) words() string {
	var said []string
	for _, c := range []limits.Class{limits.ClassInput, limits.ClassCachedInput, limits.ClassCacheWrite, limits.ClassOutput, limits.ClassReasoning} {
		if w, set := x.Weights[c]; set && w != 1000 {
			said = append(said, strings.ReplaceAll(string(c), "_", " ")+" counts "+strconv.FormatFloat(float64(w)/1000, 'f', -1, 64)+" times")
		}
	}
	if x.Outage != "" && x.Outage != limits.OutageShare {
		said = append(said, string(x.Outage)+" while the store is out")
	}
	if x.Policy == limits.PolicySliding {
		said = append(said, "never more in any window of that length")
	}
	if x.Mode == limits.ModeShadow {
		said = append(said, "reported only, refuses nothing")
	}
	return strings.Join(said, ", ")
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
			Amount: f.whole(row("limits", i, "amount")), Models: f.words(row("limits", i, "models")), EachModel: f.Get(row("limits", i, "each_model")) != "",
		}
		if l.Dimension == limits.DimensionConcurrency {
			l.Window = limits.WindowNone
		}
		x := f.extra(i)
		l.Weights, l.Outage, l.Mode = x.Weights, x.Outage, x.Mode
		if limits.Default(limits.Limit{Window: l.Window}).Policy == x.Policy || x.Policy == limits.PolicySliding && l.Window == limits.WindowMinute {
			l.Policy = x.Policy
		}
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
