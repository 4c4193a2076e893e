package web

import (
	"strings"

	"weir/web/ui"
)

// with is an input that a browser may fill in.
func with(in ui.Input, autocomplete, kind string) ui.Input {
	in.Autocomplete, in.Type = autocomplete, kind
	return in
}

// secretInput is a password. What was typed comes back in no page.
func secretInput(f form, hint, autocomplete string) ui.Input {
	in := with(f.input("password", "Password"), autocomplete, "password")
	in.Value, in.Hint = "", hint
	return in
}

// zoneInput is the time zone; the browser's own is filled in where it is empty.
func zoneInput(f form) ui.Input {
	in := f.input("zone", "Time zone")
	in.Class, in.Hint, in.Placeholder = "zone", "Days begin in this zone, for caps, reports and invoices. An IANA name such as Europe/Berlin; empty is UTC.", "Europe/Berlin"
	return in
}

// movedZoneInput is the zone that days are to begin in.
func movedZoneInput(f form) ui.Input {
	in := f.input("zone", "Days are to begin in")
	in.Hint, in.Placeholder = "An IANA name such as Europe/Berlin.", "Europe/Berlin"
	return in
}

// newSecretInput is a password beside the present one.
func newSecretInput(f form) ui.Input {
	in := secretInput(f, "At least 10 characters; a few words in a row are good.", "new-password")
	in.Label = "New password"
	return in
}

// currentInput is the present password.
func currentInput(f form) ui.Input {
	in := with(f.input("current", "Present password"), "current-password", "password")
	in.Value = ""
	return in
}

// browserName is what a browser calls itself, as far as a person knows it.
func browserName(agent string) string {
	name := "Another program"
	for _, x := range []struct{ mark, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, x.mark) {
			name = x.name
			break
		}
	}
	for _, x := range []struct{ mark, name string }{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, x.mark) {
			return name + " on " + x.name
		}
	}
	return name
}

// tokenInput is the token of the first visit, for who did not follow its link.
func tokenInput(f form) ui.Input {
	in := with(f.input("token", "Token"), "off", "text")
	in.Class, in.Hint = "mono", "The process printed it with its link when it started: look at its first lines or its log."
	return in
}
