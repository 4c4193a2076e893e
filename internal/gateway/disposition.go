package gateway

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// disposition is what a part of a form is: its name and, of a file, the file's.
type disposition struct {
	name, file string
}

// A parameter is a token and its value (RFC 2183). The extended syntax of RFC
// 2231 (name*, name*0) is none: some read it and others what stands beside it,
// and RFC 7578 keeps it out of forms. Nor are escapes in a quoted value. filename*
// alone is passed over: .NET sends it beside filename.
var parameter = regexp.MustCompile(`^[ \t]*;[ \t]*([\w.+!#$%&'^|~\x60-]+\*?)=(?:"([^"\\]*)"|([^\s;,="\\]+))`)

var errDisposition = errors.New("a part has no name, or one that can be read in two ways")

// readDisposition reads the only Content-Disposition of a part. Parameters that
// a form does not have are passed over.
func readDisposition(headers []string) (d disposition, err error) {
	if len(headers) != 1 || len(headers[0]) < len("form-data") || !strings.EqualFold(headers[0][:len("form-data")], "form-data") {
		return d, errDisposition
	}
	seen := map[string]string{}
	rest := headers[0][len("form-data"):]
	for strings.Trim(rest, " \t;") != "" {
		m := parameter.FindStringSubmatch(rest)
		if m == nil {
			return d, errDisposition
		}
		name := strings.ToLower(m[1])
		if _, twice := seen[name]; twice || !plainName(m[2]+m[3]) {
			return d, errDisposition
		}
		if strings.HasSuffix(name, "*") && name != "filename*" {
			return d, errDisposition
		}
		seen[name] = m[2] + m[3]
		rest = rest[len(m[0]):]
	}
	d = disposition{seen["name"], seen["filename"]}
	if d.name == "" {
		return d, errDisposition
	}
	return d, nil
}

// plainName tells whether everybody reads a value alike.
func plainName(s string) bool {
	return utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

// String is the header that says a disposition.
func (d disposition) String() string {
	s := `form-data; name="` + d.name + `"`
	if d.file != "" {
		s += `; filename="` + d.file + `"`
	}
	return s
}
