package ui

import "regexp"

var figure = regexp.MustCompile(`[0-9][0-9,.]*[0-9]( (million|billion))?|[0-9]( (million|billion))?`)

type piece struct {
	text   string
	figure bool
}

// figures tells the numbers of a sentence from its words.
func figures(s string) (out []piece) {
	last := 0
	for _, at := range figure.FindAllStringIndex(s, -1) {
		if at[0] > last {
			out = append(out, piece{text: s[last:at[0]]})
		}
		out = append(out, piece{text: s[at[0]:at[1]], figure: true})
		last = at[1]
	}
	if last < len(s) {
		out = append(out, piece{text: s[last:]})
	}
	return out
}
