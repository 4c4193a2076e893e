package ui

// Link is one of several views.
type Link struct {
	Words, Href string
	Current     bool
}
