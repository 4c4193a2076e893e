package exports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"

	"weir/internal/usage"
)

// sheet writes rows in a format. The first row names the columns.
type sheet interface {
	head(names []string) error
	row(cells []any) error // strings, int64s and bools; nil: none
	end(rows int64, sum, zone string) error
}

func newSheet(f Format, to *bytes.Buffer) sheet {
	if f == JSON {
		return &lines{to: to}
	}
	w := csv.NewWriter(to)
	w.UseCRLF = true
	return &table{out: w}
}

// table is CSV (RFC 4180). No cell is a formula to a spreadsheet.
type table struct {
	out     *csv.Writer
	columns int
}

func (t *table) head(names []string) error {
	t.columns = len(names)
	return t.write(names)
}

func (t *table) write(cells []string) error {
	if err := t.out.Write(cells); err != nil {
		return err
	}
	t.out.Flush()
	return t.out.Error()
}

func (t *table) row(cells []any) error {
	out := make([]string, len(cells))
	for i, c := range cells {
		switch v := c.(type) {
		case string:
			out[i] = usage.Cell(v)
		case int64:
			out[i] = strconv.FormatInt(v, 10)
		case bool:
			out[i] = strconv.FormatBool(v)
		}
	}
	return t.write(out)
}

// end is a row as wide as the others, so that the file stays a table.
func (t *table) end(rows int64, sum, zone string) error {
	cells := make([]string, t.columns)
	copy(cells, []string{"checksum", "rows " + strconv.FormatInt(rows, 10), "sha256 " + sum, zone})
	return t.write(cells)
}

// lines is one JSON object a line, with members in the order of the columns.
type lines struct {
	to    *bytes.Buffer
	names [][]byte
}

func (l *lines) head(names []string) error {
	for _, n := range names {
		quoted, err := json.Marshal(n)
		if err != nil {
			return err
		}
		l.names = append(l.names, quoted)
	}
	return nil
}

func (l *lines) row(cells []any) error {
	between := byte('{')
	for i, c := range cells {
		value, err := json.Marshal(c)
		if err != nil {
			return err
		}
		l.to.WriteByte(between)
		l.to.Write(l.names[i])
		l.to.WriteByte(':')
		l.to.Write(value)
		between = ','
	}
	l.to.WriteString("}\n")
	return nil
}

func (l *lines) end(rows int64, sum, zone string) error {
	line, err := json.Marshal(struct {
		Checksum checksum `json:"checksum"`
	}{checksum{rows, sum, zone}})
	l.to.Write(append(line, '\n'))
	return err
}

type checksum struct {
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
	Zone   string `json:"zone"`
}
