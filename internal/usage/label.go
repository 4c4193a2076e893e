package usage

import (
	"regexp"

	"weir/internal/fault"
)

// MaxLabel is the longest end user or tag, in bytes.
const MaxLabel = 200

const maxTags = 8

var (
	tagName   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	printable = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
)

// CheckLabels collects what is wrong with what a call states about itself: an
// end user of at most 200 characters and up to 8 tags, none with control
// characters.
func CheckLabels(endUser string, tags map[string]string) (wrong []fault.Field) {
	if len(endUser) > MaxLabel || !printable.MatchString(endUser) {
		wrong = append(wrong, fault.Field{Pointer: "/end_user", Code: "bad_label", Message: "An end user is at most 200 printable characters."})
	}
	if len(tags) > maxTags {
		wrong = append(wrong, fault.Field{Pointer: "/tags", Code: "too_many", Message: "A call carries at most 8 tags."})
	}
	for name, value := range tags {
		if !tagName.MatchString(name) || len(value) > MaxLabel || !printable.MatchString(value) {
			wrong = append(wrong, fault.Field{Pointer: "/tags", Code: "bad_label", Message: "A tag's name is 1 to 64 of A–Z a–z 0–9 _ . -, its value at most 200 printable characters."})
			break
		}
	}
	return wrong
}
