package usage

import (
	"regexp"
	"strings"
)

var negative = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// Cell is s as a cell of a CSV file: with an apostrophe before what a
// spreadsheet would take for a formula (OWASP, CSV injection), in the full-width
// forms too. Numbers that are below 0 stay numbers.
func Cell(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(s)[0]) {
		return s
	}
	if negative.MatchString(s) {
		return s
	}
	return "'" + s
}
