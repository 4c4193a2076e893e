package tenants

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"weir/internal/fault"
)

// MaxName is the longest name of anything, in bytes.
const MaxName = 200

// CheckName collects what is wrong with a name: empty, too long, control
// characters.
func CheckName(pointer, s string) []fault.Field {
	switch {
	case strings.TrimSpace(s) == "":
		return []fault.Field{{Pointer: pointer, Code: "required", Message: "A name is needed."}}
	case utf8.RuneCountInString(s) > MaxName:
		return []fault.Field{{Pointer: pointer, Code: "too_long", Message: "This may have at most 200 characters."}}
	}
	return CheckText(pointer, s)
}

// CheckText refuses control characters, which could break a header, a log line
// or a cell, and those that turn the text around which stands beside it.
func CheckText(pointer, s string) []fault.Field {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, control) {
		return []fault.Field{{Pointer: pointer, Code: "bad_characters", Message: "This holds control characters; use printable text in one line."}}
	}
	return nil
}

func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// CheckEmail collects what is wrong with an e-mail address.
func CheckEmail(pointer, s string) []fault.Field {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 || len(CheckText(pointer, s)) > 0 {
		return []fault.Field{{Pointer: pointer, Code: "bad_email", Message: "This is not an e-mail address such as ann@example.com."}}
	}
	return nil
}
