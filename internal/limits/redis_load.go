package limits

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// loaded is a calendar window as the books know it.
type loaded struct {
	suffix, field string
	amount        int64
	window        window
	used          sum
	reading       string
}

// packWindows packs windows, and which reading of the books told of them.
func packWindows(windows []loaded) string {
	var p packer
	p.text(windows[0].reading)
	p.count(len(windows))
	for _, w := range windows {
		p.str(w.suffix)
		p.str(w.field)
		p.ints(w.amount, w.window.start, w.window.end, w.used.n, w.used.pico)
	}
	return rueidis.BinaryString(p.b)
}

// needs are calendar windows that the books have to tell of.
func (a *answer) needs() []loaded {
	list := make([]loaded, a.count())
	for i := range list {
		n := &list[i]
		n.suffix, n.field = a.str(), a.str()
		n.amount, n.window.start, n.window.end = a.int(), a.int(), a.int()
	}
	return list
}

// load asks the books for windows. Setting them is up to the script that needs
// them: where another process was first, they are set already.
func (r *Redis) load(ctx context.Context, tenantID uuid.UUID, list []loaded, ledger func(suffix, field string) string) ([]loaded, error) {
	keys := make([]WindowKey, len(list))
	for i, w := range list {
		keys[i] = WindowKey{ledger(w.suffix, w.field), w.window.from()}
	}
	totals, reading, err := r.books.Read(ctx, tenantID, keys)
	if err != nil {
		return nil, out(err)
	}
	if len(totals) != len(keys) {
		return nil, out(fmt.Errorf("limits: the books gave %d totals for %d windows", len(totals), len(keys)))
	}
	for i := range list {
		list[i].reading = reading
		if used := (sum{totals[i].Amount, totals[i].Pico}).carried(); used.n >= 0 {
			list[i].used = used
		}
	}
	return list, nil
}
