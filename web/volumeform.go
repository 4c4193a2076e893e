package web

import (
	"strconv"
	"strings"

	"weir/internal/quotes"
	"weir/web/ui"
)

// leastVolumes is how many rows of volumes a form has at the least.
const leastVolumes = 2

// volumeRow is a stated volume as a row of a form.
type volumeRow struct {
	Model, Requests, Input, Cached, Output ui.Input
	Error                                  string
}

func (f form) volumeRows() (out []volumeRow) {
	for i := range min(maxRows, max(leastVolumes, f.rows("volumes", "model"))) {
		n := strconv.Itoa(i + 1)
		in := func(member, says string) ui.Input {
			x := f.input(row("volumes", i, member), "")
			x.Label2, x.Class, x.InputMode = "Volume "+n+", "+says, "num", "numeric"
			return x
		}
		r := volumeRow{Requests: in("requests", "requests"), Input: in("input_tokens", "input tokens"), Cached: in("cached_input_tokens", "cached input tokens"), Output: in("output_tokens", "output tokens"), Error: f.Error("volumes." + strconv.Itoa(i))}
		r.Model = f.input(row("volumes", i, "model"), "")
		r.Model.Label2, r.Model.Class, r.Model.Placeholder = "Volume "+n+", model", "mono", "gpt-4o"
		out = append(out, r)
	}
	return out
}

func (f form) putVolume(i int, x quotes.Volume) {
	if i >= maxRows {
		return
	}
	f.Set(row("volumes", i, "model"), x.Model)
	for member, n := range map[string]int64{"requests": x.Requests, "input_tokens": x.Input, "cached_input_tokens": x.CachedInput, "output_tokens": x.Output} {
		if f.Set(row("volumes", i, member), ""); n > 0 {
			f.Set(row("volumes", i, member), ui.Count(n))
		}
	}
}

// volumes reads the rows that name a model.
func (f *form) volumes() (list []quotes.Volume, from []int) {
	for i := range f.rows("volumes", "model") {
		x := quotes.Volume{Model: strings.TrimSpace(f.Get(row("volumes", i, "model")))}
		for member, n := range map[string]*int64{"requests": &x.Requests, "input_tokens": &x.Input, "cached_input_tokens": &x.CachedInput, "output_tokens": &x.Output} {
			if name := row("volumes", i, member); strings.TrimSpace(f.Get(name)) != "" {
				*n = f.whole(name)
			}
		}
		if x == (quotes.Volume{}) {
			continue
		}
		list, from = append(list, x), append(from, i)
	}
	return list, from
}
