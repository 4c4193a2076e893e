package usage

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/money"
)

// decodeEvent reads the body of an event as strictly as decode does. Nearly all
// are as appendEvent writes them; those are read in one pass, which takes a third
// of what a library takes that goes by reflection.
func decodeEvent(b []byte, e *Event) error {
	if skimEvent(b, e) {
		return nil
	}
	*e = Event{}
	return decode(b, e)
}

// skim is a body that is read as it would have been written: members in their
// order, nothing escaped, no space. What is otherwise is not wrong, but is not
// read here.
type skim struct {
	b     []byte // what is left
	first bool   // nothing of this object came yet
	odd   bool   // it is not so
}

func skimEvent(b []byte, e *Event) bool {
	s := &skim{b: b}
	s.object(func() {
		e.Version = int(s.number("v"))
		s.ident("id", &e.ID)
		s.ident("request_id", &e.RequestID)
		s.ident("tenant", &e.Tenant)
		s.ident("customer", &e.Customer)
		s.ident("subscription", &e.Subscription)
		s.ident("plan_version", &e.PlanVersion)
		s.ident("key", &e.Key)
		s.ident("counter", &e.Counter)
		s.ident("provider_key", &e.ProviderKey)
		s.ident("corrects", &e.Corrects)
		e.EndUser = s.words("end_user")
		e.Tags = s.tags()
		e.ModelAsked, e.ModelServed, e.Kind = s.words("model_asked"), s.words("model_served"), s.words("kind")
		e.Stream = s.flag("stream")
		e.StartedAt, e.EndedAt, e.LocalDay = s.instant("started_at"), s.instant("ended_at"), s.instant("local_day")
		e.Outcome, e.Requests, e.Refused = Outcome(s.words("outcome")), s.number("requests"), s.number("refused")
		e.Tokens = s.tokens()
		e.Units, e.Estimated = s.number("units"), s.words("estimated")
		e.Estimate, e.Guess = s.cost("estimate"), s.number("guess")
		e.Attempts, e.Charges = skimList(s, "attempts", s.attempt), skimList(s, "charges", s.charge)
		s.pico("charge_pico", &e.Charge)
		e.Currency = s.words("currency")
		var cost money.Pico
		if s.pico("cost_pico", &cost) {
			e.Cost = &cost
		}
		e.CostCurrency = s.words("cost_currency")
		e.Prices = skimList(s, "prices", func(id *uuid.UUID) { *id = s.id() })
		e.Test, e.SelfReported, e.Settled = s.flag("test"), s.flag("self_reported"), Outcome(s.words("settled"))
	})
	return !s.odd && len(s.b) == 0
}

func (s *skim) attempt(a *Attempt) {
	s.object(func() {
		a.Provider = s.words("provider")
		s.ident("provider_key", &a.ProviderKey)
		a.Model, a.Status, a.Error = s.words("model"), int(s.number("status")), s.words("error")
		a.StartedAt, a.EndedAt = s.instant("started_at"), s.instant("ended_at")
		a.Tokens, a.Reported = s.tokens(), s.words("reported")
	})
}

func (s *skim) charge(c *limits.Charge) {
	s.object(func() {
		c.Ledger, c.WindowStart, c.Amount, c.Pico = s.words("ledger"), s.instant("window_start"), s.number("amount"), s.number("pico")
	})
}

func (s *skim) cost(name string) (c limits.Cost) {
	if s.member(name) {
		s.object(func() {
			c.Requests, c.Units, c.Tokens = s.number("requests"), s.number("units"), s.tokens()
			c.ChargePico, c.ProviderPico = s.number("charge_pico"), s.number("provider_pico")
		})
	}
	return c
}

func (s *skim) tokens() (t limits.Tokens) {
	if s.member("tokens") {
		s.object(func() {
			t.Input, t.CachedInput, t.CacheWrite = s.number("input_tokens"), s.number("cached_input_tokens"), s.number("cache_write_tokens")
			t.Output, t.Reasoning = s.number("output_tokens"), s.number("reasoning_tokens")
		})
	}
	return t
}

func (s *skim) tags() (tags map[string]string) {
	if !s.member("tags") {
		return nil
	}
	tags = map[string]string{}
	s.take('{')
	for n := 0; !s.odd && !s.takes('}'); n++ {
		if n > 0 {
			s.take(',')
		}
		name := s.text()
		s.take(':')
		tags[name] = s.text()
		s.odd = s.odd || len(tags) != n+1 // one name twice
	}
	return tags
}

// skimList reads the items of a list; nil where there is none.
func skimList[T any](s *skim, name string, one func(*T)) (list []T) {
	if !s.member(name) {
		return nil
	}
	s.take('[')
	list = []T{}
	for n := 0; !s.odd && !s.takes(']'); n++ {
		if n > 0 {
			s.take(',')
		}
		var item T
		one(&item)
		list = append(list, item)
	}
	return list
}

// object reads an object whose members read takes in their order.
func (s *skim) object(read func()) {
	s.take('{')
	s.first = true
	read()
	s.take('}')
	s.first = false
}

// member tells whether a member comes next, and is then at its value.
func (s *skim) member(name string) bool {
	b := s.b
	if !s.first {
		if len(b) == 0 || b[0] != ',' {
			return false
		}
		b = b[1:]
	}
	n := len(name)
	if s.odd || len(b) < n+4 || b[0] != '"' || string(b[1:n+1]) != name || b[n+1] != '"' || b[n+2] != ':' {
		return false
	}
	s.b, s.first = b[n+3:], false
	return true
}

func (s *skim) takes(c byte) bool {
	if len(s.b) == 0 || s.b[0] != c {
		return false
	}
	s.b = s.b[1:]
	return true
}

func (s *skim) take(c byte) { s.odd = s.odd || !s.takes(c) }

// mostDigits is fewer than overflow.
const mostDigits = 18

func (s *skim) number(name string) (n int64) {
	if !s.member(name) {
		return 0
	}
	minus := s.takes('-')
	digits := 0
	for ; digits < len(s.b) && s.b[digits] >= '0' && s.b[digits] <= '9' && digits <= mostDigits; digits++ {
		n = 10*n + int64(s.b[digits]-'0')
	}
	if digits == 0 || digits > mostDigits || s.b[0] == '0' && (digits > 1 || minus) {
		s.odd = true
		return 0
	}
	s.b = s.b[digits:]
	if minus {
		return -n
	}
	return n
}

func (s *skim) flag(name string) bool {
	if !s.member(name) {
		return false
	}
	rest, on := bytes.CutPrefix(s.b, []byte("true"))
	s.b, s.odd = rest, s.odd || !on
	return on
}

func (s *skim) words(name string) string {
	if !s.member(name) {
		return ""
	}
	return s.text()
}

// quoted is what stands between the quotes of a string.
func (s *skim) quoted() []byte {
	s.take('"')
	end := bytes.IndexByte(s.b, '"')
	if s.odd || end < 0 {
		s.odd = true
		return nil
	}
	text := s.b[:end]
	s.b = s.b[end+1:]
	return text
}

func (s *skim) text() string {
	text := s.quoted()
	ascii := true
	for _, c := range text {
		s.odd = s.odd || c < ' ' || c == '\\'
		ascii = ascii && c < utf8.RuneSelf
	}
	s.odd = s.odd || !ascii && !utf8.Valid(text)
	return string(text)
}

// instant reads a time of UTC as Go writes it.
func (s *skim) instant(name string) time.Time {
	if !s.member(name) {
		return time.Time{}
	}
	text := s.quoted()
	if n := len(text); n < 20 || text[10] != 'T' || text[13] != ':' || text[16] != ':' || text[n-1] != 'Z' || n > 20 && text[19] != '.' {
		s.odd = true
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	s.odd = s.odd || err != nil
	return t
}

func (s *skim) pico(name string, p *money.Pico) bool {
	if !s.member(name) {
		return false
	}
	text := s.quoted()
	s.odd = s.odd || p.UnmarshalText(text) != nil
	return true
}

func (s *skim) ident(name string, id *uuid.UUID) {
	if s.member(name) {
		*id = s.id()
	}
}

func (s *skim) id() (id uuid.UUID) {
	text := s.quoted()
	id, err := uuid.ParseBytes(text)
	s.odd = s.odd || err != nil || len(text) != 36
	return id
}
