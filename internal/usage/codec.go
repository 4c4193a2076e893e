package usage

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// version is the form of an event's body that this binary writes. A worker
// refuses a version that it does not know, and a dead letter can be replayed by
// one that does: deploy workers first.
const version = 1

// maxBody is the largest body of an event; a run of events has to fit a message.
const maxBody = 256 << 10

var (
	encoding = json.JoinOptions(jsonv1.FormatDurationAsNano(true), json.Deterministic(true), json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true))
	decoding = json.JoinOptions(encoding, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(false))
)

// encode is the one body of an event: one line of JSON, which spool, message
// and hash share. It holds nothing that Postgres takes for no text.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, encoding)
	return withoutNUL(b), err
}

var nul = []byte(`\u0000`)

func withoutNUL(b []byte) []byte {
	if !bytes.Contains(b, nul) {
		return b
	}
	return bytes.ReplaceAll(b, nul, []byte(`\ufffd`))
}

// decode reads a body strictly: a member that is unknown or doubled is an error.
func decode(b []byte, v any) error { return json.Unmarshal(b, v, decoding) }

// The longest texts kept of a call.
const (
	maxModel  = 200
	maxUser   = 200
	maxText   = 500
	maxLedger = 1000
)

// clean makes of e what can be stored: times in UTC at the precision of the
// database, text that it takes, and the version. What e shares with its copies
// is left alone.
func (e *Event) clean() {
	e.Version = version
	for _, t := range []*time.Time{&e.StartedAt, &e.EndedAt, &e.LocalDay} {
		*t = stored(*t)
	}
	e.EndUser = text(e.EndUser, maxUser)
	e.ModelAsked = text(e.ModelAsked, maxModel)
	e.ModelServed = text(e.ModelServed, maxModel)
	e.Estimated = text(e.Estimated, maxText)
	e.Tags = cleanTags(e.Tags)
	e.Attempts, e.Charges = slices.Clone(e.Attempts), slices.Clone(e.Charges)
	for i := range e.Attempts {
		a := &e.Attempts[i]
		a.StartedAt, a.EndedAt = stored(a.StartedAt), stored(a.EndedAt)
		a.Model, a.Error, a.Reported = text(a.Model, maxModel), text(a.Error, maxText), text(a.Reported, maxModel)
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		c.WindowStart, c.Ledger = stored(c.WindowStart), text(c.Ledger, maxLedger)
	}
	if e.Outcome.Refused() && e.Refused == 0 {
		e.Refused = 1
	}
}

func cleanTags(tags map[string]string) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	clean := make(map[string]string, len(tags))
	for k, v := range tags {
		clean[text(k, maxUser)] = text(v, maxUser)
	}
	return clean
}

func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// text is s as Postgres takes it (valid UTF-8, no NUL), cut at most bytes.
func text(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// decodeOwn reads what this process or an earlier life of it wrote. Members that
// a newer version added are skipped.
func decodeOwn(b []byte, v any) error { return json.Unmarshal(b, v, encoding) }
