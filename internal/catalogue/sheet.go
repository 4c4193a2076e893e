package catalogue

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/fault"
	"weir/internal/money"
)

// Bounds of one file.
const (
	mostBytes = 900 << 10
	mostRows  = 5000
	mostWrong = 50 // that are told
)

// sheet is how rows of one kind stand in a CSV file: a header, then a row a
// line.
type sheet[R any] struct {
	kind    string
	columns []string
	read    func(*cells) R
	write   func(R) []string
	key     func(R) string // that two rows of one file never share
}

// line is a row and where it stood.
type line[R any] struct {
	row R
	at  int
}

// parse reads a file. Whatever is wrong with its rows is said of each line, and
// nothing of the file is taken then: Invalid, with a pointer to /csv.
func (s sheet[R]) parse(file string) ([]line[R], error) {
	if len(file) > mostBytes {
		return nil, fault.Newf(fault.TooLarge, "body_too_large", "A file has at most %d bytes.", mostBytes)
	}
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(file, "\ufeff")))
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, wrongFile("The file is empty, or its first line is no header: it names the columns "+strings.Join(s.columns, ", ")+".", err)
	}
	if err := s.checkHead(head); err != nil {
		return nil, err
	}
	var out []line[R]
	var wrong []fault.Field
	first := map[string]int{}
	for {
		values, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrongFile("The file is no CSV: "+err.Error()+".", err)
		}
		at, _ := in.FieldPos(0)
		c := &cells{columns: head, values: values, line: at}
		row := s.read(c)
		if len(values) != len(head) {
			c.wrong = []fault.Field{c.field("", "wrong_length", fmt.Sprintf("it has %d cells, and the header %d", len(values), len(head)))}
		}
		if len(c.wrong) == 0 {
			if before, twice := first[s.key(row)]; twice {
				c.wrong = []fault.Field{c.field("", "duplicate", fmt.Sprintf("line %d is about the same, from the same day", before))}
			}
			first[s.key(row)] = at
		}
		wrong = append(wrong, c.wrong...)
		out = append(out, line[R]{row, at})
		if len(out) > mostRows {
			return nil, fault.Newf(fault.TooLarge, "too_many_rows", "A file has at most %d rows.", mostRows)
		}
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong[:min(len(wrong), mostWrong)]...)
	}
	return out, nil
}

func wrongFile(message string, err error) error {
	return fault.InvalidFields(fault.Field{Pointer: "/csv", Code: "bad_csv", Message: message}).Because(err)
}

func (s sheet[R]) checkHead(head []string) error {
	for i, name := range head {
		if !slices.Contains(s.columns, name) || slices.Contains(head[:i], name) {
			return wrongFile(fmt.Sprintf("Line 1: %q is no column here, or stands twice. The columns are %s.", cut(name), strings.Join(s.columns, ", ")), nil)
		}
	}
	for _, name := range s.columns {
		if !slices.Contains(head, name) {
			return wrongFile("Line 1: the column "+name+" is missing.", nil)
		}
	}
	return nil
}

// file writes rows, each cell such that a spreadsheet takes none for a formula.
func (s sheet[R]) file(rows []R) string {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	_ = out.Write(s.columns) // a buffer takes everything
	for _, r := range rows {
		values := s.write(r)
		for i, v := range values {
			values[i] = guarded(v)
		}
		_ = out.Write(values)
	}
	out.Flush()
	return b.String()
}

// formula are the first characters that make a spreadsheet compute (OWASP, CSV
// injection), in the full-width forms too.
const formula = "=+-@\t\r\n＝＋－＠"

func guarded(s string) string {
	bare := strings.TrimLeft(s, "'")
	if r, _ := utf8.DecodeRuneInString(bare); bare != "" && strings.ContainsRune(formula, r) {
		return "'" + s
	}
	return s
}

// bare is a cell without what guarded put before it.
func bare(s string) string {
	if cell, found := strings.CutPrefix(s, "'"); found && guarded(cell) == s {
		return cell
	}
	return s
}

// cells are the values of one line.
type cells struct {
	columns, values []string
	line            int
	wrong           []fault.Field
}

func (c *cells) field(column, code, message string) fault.Field {
	where := fmt.Sprintf("Line %d", c.line)
	if column != "" {
		where += ", " + column
	}
	return fault.Field{Pointer: "/csv", Code: code, Message: where + ": " + message + "."}
}

func (c *cells) refuse(column, code, message string) {
	c.wrong = append(c.wrong, c.field(column, code, strings.TrimSuffix(message, ".")))
}

func (c *cells) raw(column string) string {
	i := slices.Index(c.columns, column)
	if i < 0 || i >= len(c.values) {
		return ""
	}
	return bare(strings.TrimSpace(c.values[i]))
}

func (c *cells) text(column string, most int) string {
	s := c.raw(column)
	if s == "" || len(s) > most || !utf8.ValidString(s) || strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
		c.refuse(column, "bad_text", fmt.Sprintf("it must have 1 to %d characters, and no control characters", most))
	}
	return s
}

func (c *cells) provider() string {
	s := c.text("provider", 60)
	if _, known := Lookup(s); s != "" && !known {
		c.refuse("provider", "unknown_provider", "there is no provider "+cut(s))
	}
	return s
}

func (c *cells) model() string {
	s := c.raw("model")
	if !ValidModel(s) {
		c.refuse("model", "bad_model", "it is no model name, nor a pattern such as gpt-4o*")
	}
	return s
}

func (c *cells) whole(column string, optional bool) int64 {
	s := c.raw(column)
	if s == "" && optional {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > mostCount {
		c.refuse(column, "out_of_range", fmt.Sprintf("it must be a whole number from 0 to %d, without separators", int64(mostCount)))
	}
	return n
}

func (c *cells) day(column string, optional bool) time.Time {
	s := c.raw(column)
	if s == "" && optional {
		return time.Time{}
	}
	t, err := time.Parse(dayForm, s)
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		c.refuse(column, "bad_day", "it must be a day such as 2026-11-30")
	}
	return t
}

func (c *cells) oneOf(column string, allowed ...string) string {
	s := c.raw(column)
	if !slices.Contains(allowed, s) {
		c.refuse(column, "not_one_of", "it must be one of "+strings.Join(allowed, ", "))
	}
	return s
}

func (c *cells) currency() string {
	s := c.raw("currency")
	if !money.ValidCurrency(s) {
		c.refuse("currency", "bad_currency", "it must be a currency such as USD")
	}
	return s
}

func day(t time.Time) string { return t.Format(dayForm) }

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func unlessZero(n int64) string {
	if n == 0 {
		return ""
	}
	return whole(n)
}

// cut keeps what a stranger wrote short in a message.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), 60)], "") }
