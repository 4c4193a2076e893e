package limits

// sliding counts what was charged in any window of a length: never more than its
// amount. It counts in sub-buckets, each of which counts whole until all of it
// has left the window: late by at most one of them, on the refusing side.
type sliding struct {
	amount int64
	used   int64 // the sum of the sub-buckets
	held   int64 // charged for calls still open, however long ago
	now    int64 // the number of the sub-bucket that runs
}

// Minutes are counted in 60 sub-buckets of a second, days in 288 of five
// minutes; one more is on its way out.
const (
	minuteParts, minuteWidth   = 60 + 1, 1_000
	rollingParts, rollingWidth = 288 + 1, 5 * 60_000
)

type minute struct {
	head
	sliding
	parts [minuteParts]int64
}

type rolling struct {
	head
	sliding
	parts [rollingParts]int64
}

// slider is a sliding ledger with its sub-buckets, of a width in ms.
type slider struct {
	*sliding
	parts []int64
	width int64
}

func (m *minute) slider() slider  { return slider{&m.sliding, m.parts[:], minuteWidth} }
func (r *rolling) slider() slider { return slider{&r.sliding, r.parts[:], rollingWidth} }

func (s slider) part(number int64) *int64 {
	i := number % int64(len(s.parts))
	if i < 0 {
		i += int64(len(s.parts))
	}
	return &s.parts[i]
}

// touch drops the sub-buckets that have left the window, and takes over a
// changed amount.
func (s slider) touch(amount, now int64) {
	s.amount = amount
	number := floorDiv(now, s.width)
	if number <= s.now {
		return
	}
	if number-s.now >= int64(len(s.parts)) && s.used != 0 {
		clear(s.parts)
		s.used = 0
	}
	if s.used == 0 {
		s.now = number
		return
	}
	for s.now < number {
		s.now++
		gone := s.part(s.now)
		s.used -= *gone
		*gone = 0
	}
}

// wait is the time in ms until cost and what others ask for before it fit; never
// if it never can.
func (s slider) wait(cost, ahead, now int64) int64 {
	if cost > s.amount {
		return never
	}
	missing := s.used + ahead + cost - s.amount
	if missing <= 0 {
		return 0
	}
	for number := s.now - int64(len(s.parts)) + 1; number <= s.now; number++ {
		if missing -= *s.part(number); missing <= 0 {
			return s.leaves(number) - now
		}
	}
	return s.leaves(s.now) - now // those before it charge what is not charged yet
}

// leaves is the instant at which all of a sub-bucket has left the window.
func (s slider) leaves(number int64) int64 { return (number + int64(len(s.parts))) * s.width }

// within tells whether a sub-bucket still counts.
func (s slider) within(number int64) bool {
	return number > s.now-int64(len(s.parts)) && number <= s.now
}

func (s slider) add(number, n int64) {
	*s.part(number) += n
	s.used += n
}

// charge takes h.amount, and notes the sub-bucket in h.
func (s slider) charge(h *hold) {
	s.add(s.now, h.amount.n)
	s.held += h.amount.n
	h.mark = s.now
}

// settle corrects the sub-bucket that the call was charged in; once that has
// left the window, there is nothing to correct.
func (s slider) settle(h *hold, actual int64) {
	if s.within(h.mark) {
		s.add(h.mark, actual-h.amount.n)
	}
	s.lapse(h)
}

func (s slider) lapse(h *hold) {
	if h.open {
		s.held -= h.amount.n
		h.open = false
	}
}

// untilEmpty is the time in ms until all that is used has left the window.
func (s slider) untilEmpty(now int64) int64 {
	for number := s.now; s.within(number); number-- {
		if *s.part(number) != 0 {
			return s.leaves(number) - now
		}
	}
	return 0
}

// begin is a new ledger at an instant, unused or, for all that is known, spent.
func (s slider) begin(amount, now int64, spent bool) {
	s.amount, s.now = amount, floorDiv(now, s.width)
	if spent {
		s.add(s.now, amount)
	}
}
