package branding

// Hue is a colour that is offered: its name, and how it is called. Lightness and
// chroma are the pages' own, so that contrast holds; the degrees stand in the
// style sheet. Red, which means refused, is none.
type Hue struct{ Name, Words string }

// Hues are those that are offered, beside Weir's own water.
var Hues = []Hue{
	{"ochre", "Ochre"},
	{"moss", "Moss"},
	{"fir", "Fir"},
	{"teal", "Teal"},
	{"sky", "Sky"},
	{"indigo", "Indigo"},
	{"violet", "Violet"},
	{"plum", "Plum"},
}
