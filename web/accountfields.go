package web

import "weir/web/ui"

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
