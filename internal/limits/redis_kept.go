package limits

import "github.com/google/uuid"

// What Redis keeps of a reservation is laid out in record.lua: its numbers, three
// numbers of each hold, the rest of each hold, its texts, and its definitions.

// packNumbers packs the numbers of a reservation of an earlier life.
func packNumbers(as int64, forget bool, o *Reservation) []byte {
	var p packer
	p.byte(int(as))
	p.flag(forget)
	p.byte(0) // late
	p.byte(0) // the request was given back
	p.count(len(o.Holds))
	p.ints(o.At.UnixMicro(), o.ExpiresAt.UnixMicro(), o.ExpiresAt.Add(remembered).UnixMicro(), o.Estimate.Requests, int64(o.Moves), -1)
	return p.b
}

// packTexts packs the texts of a reservation that has not ended; its definitions
// follow.
func packTexts(p *packer, estimate, model, user, owner string, once Once) {
	for _, s := range []string{"", "", estimate, model, user, owner, once.packed()} {
		p.text(s)
	}
}

func packDefinitions(p *packer, sets []*Set) {
	p.count(len(sets))
	for _, s := range sets {
		p.long(s.told().definitions())
	}
}

// The flags of a hold.
const (
	holdCandidate = 1
	holdEnded     = 2
	holdOthers    = 4
	holdOld       = 8
)

// keptHold is what is kept of a hold beside its three numbers.
type keptHold struct {
	rule          *rule
	suffix, field string
	flags         int
	cost          sum
	definition    int    // which of the reservation's, from 1
	name          string // of a candidate its model; of a restored one its ledger
}

// pack leaves the suffix out where it is that of the hold before.
func (k *keptHold) pack(p *packer, before string) {
	r := k.rule
	counts := r.set.told().rules[r.place].counts
	if k.suffix == before {
		p.str("")
	} else {
		p.str(k.suffix)
	}
	p.entry(k.field, r.kind)
	p.byte(k.flags)
	p.byte(counts)
	p.ints(k.cost.n, k.cost.pico, r.limit.Amount, r.ceiling)
	p.count(k.definition)
	p.count(1 + r.place)
	p.text(k.name)
	if counts == farCountsTokens {
		p.ints(r.weights[:]...)
	}
}

// entry is a field as the directory of a group has it, up to its kind.
func (p *packer) entry(field string, k kind) {
	p.byte(len(field) + 2)
	p.str(field)
	p.byte(int(k))
}

func idOf(s string) (u uuid.UUID) {
	copy(u[:], s)
	return u
}
