package chrome

import (
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// spot is where something is, in CSS pixels of the window.
type spot struct{ X, Y float64 }

// Press clicks what says exactly these words, or begins with them: a button, a
// link, a tab. It waits for it to be there and to be enabled.
func (tab *Tab) Press(words string) {
	tab.t.Helper()
	tab.click(fmt.Sprintf("something to press that says %q", words), "press("+quoted(words)+")")
}

func (tab *Tab) click(what, expression string) {
	tab.t.Helper()
	tab.Settle()
	at := tab.spot(what, expression)
	if err := tab.do(chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		tab.t.Fatalf("%s: %v", what, err)
	}
}

func (tab *Tab) spot(what, expression string) spot {
	tab.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		var at *spot
		if err := tab.ask(expression, &at); err == nil && at != nil {
			return *at
		}
		<-time.After(20 * time.Millisecond)
	}
	tab.t.Fatalf("there is nothing like it: %s", what)
	return spot{}
}

// Fill puts text into the field with that label, in place of what is there.
func (tab *Tab) Fill(label, text string) {
	tab.t.Helper()
	tab.click(fmt.Sprintf("a field %q", label), "field("+quoted(label)+")")
	tab.keys("a", chromedp.ModifierCtrl)
	tab.keys(kb.Delete)
	tab.Type(text)
}

// Choose takes an option of the list with that label, by its words or value.
func (tab *Tab) Choose(label, words string) {
	tab.t.Helper()
	tab.until(fmt.Sprintf("a list %q with %q", label, words), "choose("+quoted(label)+","+quoted(words)+")", func(ok bool) bool { return ok })
}

// Value is what the field with that label holds.
func (tab *Tab) Value(label string) string {
	tab.t.Helper()
	tab.spot(fmt.Sprintf("a field %q", label), "field("+quoted(label)+")")
	var v string
	tab.JS("labelled("+quoted(label)+").value", &v)
	return v
}

// Type presses the keys of a text.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	tab.keys(text)
}

// Keys presses keys of package kb, as kb.Tab.
func (tab *Tab) Keys(keys string, modifiers ...chromedp.Modifier) {
	tab.t.Helper()
	tab.keys(keys, modifiers...)
}

func (tab *Tab) keys(keys string, modifiers ...chromedp.Modifier) {
	tab.t.Helper()
	if err := tab.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...))); err != nil {
		tab.t.Fatal(err)
	}
}

// Found waits until the search over everything shows what it has for a text.
func (tab *Tab) Found(text string) {
	tab.t.Helper()
	tab.until("results for "+text, `document.querySelector("#palette-found [data-for]")?.dataset.for === `+quoted(text), func(found bool) bool { return found })
}

// TabTo presses the tabulator until what has the focus says these words or has
// this label, as somebody without a mouse does. The focus must show.
func (tab *Tab) TabTo(words string) {
	tab.t.Helper()
	for range 150 {
		tab.keys(kb.Tab)
		var on focused
		tab.JS("focus()", &on)
		if !on.Shows {
			tab.t.Fatalf("the focus is on %q and cannot be seen", on.Name)
		}
		if on.Name == words {
			return
		}
	}
	tab.t.Fatalf("150 tabulators do not lead to %q", words)
}

type focused struct {
	Name  string
	Shows bool
}
