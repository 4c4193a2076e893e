package web

import (
	"strconv"
	"strings"

	"weir/internal/limits"
	"weir/web/ui"
)

// What most limits leave as it is: whom they hold for, how they count, what they do at their end,
// and what each kind of token counts for.

var (
	policyOptions = []ui.Option{{Label: "as usual for its window"}, {Value: "bucket", Label: "refilling, with a burst"}, {Value: "sliding", Label: "never more in any window"}}
	holdsOptions  = []ui.Option{{Label: "all together"}, {Value: "end_user", Label: "each end user"}}
	modeOptions   = []ui.Option{{Value: "enforce", Label: "refuse"}, {Value: "shadow", Label: "only report"}}
	outageOptions = []ui.Option{{Value: "share", Label: "each server grants its share"}, {Value: "closed", Label: "refuse"}, {Value: "open", Label: "let pass"}}
)

// weighed are the kinds of token that each dimension counts.
var weighed = map[limits.Dimension][]limits.Class{
	limits.DimensionTokens:       {limits.ClassInput, limits.ClassCachedInput, limits.ClassCacheWrite, limits.ClassOutput, limits.ClassReasoning},
	limits.DimensionInputTokens:  {limits.ClassInput, limits.ClassCachedInput, limits.ClassCacheWrite},
	limits.DimensionOutputTokens: {limits.ClassOutput, limits.ClassReasoning},
}

func weightField(i int, c limits.Class) string { return row("limits", i, "weights."+string(c)) }

// withoutUsers are rows of limits that no end user has for itself.
func withoutUsers(rows []limitRow) []limitRow {
	for i := range rows {
		rows[i].Holds = ui.Input{}
	}
	return rows
}

// finer fills what a row shows of these.
func finer(r *limitRow, in func(member, says string) ui.Input) {
	r.Holds = in("scope", "whom it holds for")
	r.Holds.Label, r.Holds.Options = "Holds for", ui.Choose(r.Holds.Value, append([]ui.Option{}, holdsOptions...)...)
	r.Policy, r.Mode, r.Outage = in("policy", "how it counts"), in("mode", "at its end"), in("outage", "while the store is out")
	r.Policy.Label, r.Mode.Label, r.Outage.Label = "Counts", "At its end", "While the store is out"
	r.Policy.Options = ui.Choose(r.Policy.Value, append([]ui.Option{}, policyOptions...)...)
	r.Mode.Options = ui.Choose(r.Mode.Value, append([]ui.Option{}, modeOptions...)...)
	r.Outage.Options = ui.Choose(r.Outage.Value, append([]ui.Option{}, outageOptions...)...)
	var said []string
	for _, c := range weighed[limits.Dimension(r.Dimension.Value)] {
		name := strings.ReplaceAll(string(c), "_", " ")
		w := in("weights."+string(c), name+" counts times")
		w.Label, w.Class, w.InputMode, w.Placeholder = name, "num", "decimal", "1"
		if w.Value != "" && w.Value != "1" {
			said = append(said, name+" counts "+w.Value+" times")
		}
		r.FinerWrong = r.FinerWrong || w.Error != ""
		r.Weights = append(r.Weights, w)
	}
	if r.Holds.Value == string(limits.ScopeEndUser) {
		said = append(said, "for each end user")
	}
	if r.Policy.Value == string(limits.PolicySliding) {
		said = append(said, "never more in any window of that length")
	}
	if r.Mode.Value == string(limits.ModeShadow) {
		said = append(said, "reported only, refuses nothing")
	}
	if r.Outage.Value != "" && r.Outage.Value != string(limits.OutageShare) {
		said = append(said, r.Outage.Value+" while the store is out")
	}
	r.Finer = strings.Join(said, ", ")
	for _, x := range []ui.Input{r.Holds, r.Policy, r.Mode, r.Outage} {
		r.FinerWrong = r.FinerWrong || x.Error != ""
	}
}

// putFiner writes these of a limit into its row.
func (f form) putFiner(i int, l limits.Limit) {
	if l.Policy != limits.Default(limits.Limit{Window: l.Window}).Policy {
		f.Set(row("limits", i, "policy"), string(l.Policy))
	}
	if l.EachEndUser() {
		f.Set(row("limits", i, "scope"), string(limits.ScopeEndUser))
	}
	f.Set(row("limits", i, "mode"), string(l.Mode))
	f.Set(row("limits", i, "outage"), string(l.Outage))
	for c, w := range l.Weights {
		f.Set(weightField(i, c), strconv.FormatFloat(float64(w)/1000, 'f', -1, 64))
	}
}

// readFiner reads these into a limit. A weight of a token that the dimension
// does not count is dropped: its field is not there.
func (f *form) readFiner(i int, l *limits.Limit) {
	l.Policy, l.Scope.Kind = limits.Policy(f.Get(row("limits", i, "policy"))), limits.ScopeKind(f.Get(row("limits", i, "scope")))
	l.Mode, l.Outage = limits.Mode(f.Get(row("limits", i, "mode"))), limits.Outage(f.Get(row("limits", i, "outage")))
	for _, c := range weighed[l.Dimension] {
		typed := strings.TrimSpace(f.Get(weightField(i, c)))
		if typed == "" {
			continue
		}
		w, ok := thousandths(typed)
		if !ok {
			f.wrong(weightField(i, c), "This is not a factor such as 0.5, with at most three decimals.")
			continue
		}
		if w != 1000 {
			if l.Weights == nil {
				l.Weights = map[limits.Class]int64{}
			}
			l.Weights[c] = w
		}
	}
}

// thousandths reads a factor with at most three decimals: "0.5" is 500.
func thousandths(s string) (int64, bool) {
	whole, frac, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 4 || len(frac) > 3 || point && frac == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 3-len(frac)), 10, 32)
	return int64(n), err == nil
}
