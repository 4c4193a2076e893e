package limits

import (
	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// What Redis keeps of a reservation is laid out in record.lua: its numbers, three
// numbers of each hold, its texts, its definitions, and the rest of each hold.

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

// packTexts packs the texts and definitions of a reservation that has not ended.
func packTexts(p *packer, estimate, model, user, owner string, once Once, sets []*Set) {
	for _, s := range []string{estimate, "", "", model, user, owner, once.packed()} {
		p.text(s)
	}
	packDefinitions(p, sets)
}

func packDefinitions(p *packer, sets []*Set) {
	p.count(len(sets))
	for _, s := range sets {
		p.long(s.told().definitions)
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

func (k *keptHold) pack(p *packer) {
	r := k.rule
	counts := r.set.told().rules[r.place].counts
	p.str(k.suffix)
	p.str(k.field)
	p.byte(int(r.kind))
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

// keptOf are the arguments that follow what a script is told: what every candidate
// keeps with the holds of the first, and the holds of the others.
func keptOf(common packer, holds []packer) []string {
	if len(holds) > 0 {
		common.b = append(common.b, holds[0].b...)
	}
	list := []string{rueidis.BinaryString(common.b)}
	for i := 1; i < len(holds); i++ {
		list = append(list, rueidis.BinaryString(holds[i].b))
	}
	return list
}

func idOf(s string) (u uuid.UUID) {
	copy(u[:], s)
	return u
}
