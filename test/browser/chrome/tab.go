package chrome

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Tab is one tab. Its methods fail the test where the page does not do what is
// asked within patience. It is not safe for concurrent use.
type Tab struct {
	t       testing.TB
	ctx     context.Context
	browser context.Context
	person  cdp.BrowserContextID
	base    string
	seen    *seen
}

// The widths that pages are looked at, in CSS pixels.
const (
	Phone   = 390
	Tablet  = 768
	Desktop = 1440
)

// patience is how long a page may take for anything.
const patience = 20 * time.Second

//go:embed find.js
var find string

// Open goes to a path of the installation, or to a whole address of it, and
// waits until it is loaded.
func (tab *Tab) Open(path string) {
	tab.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = tab.base + path
	}
	tab.seen.fresh()
	if err := tab.do(chromedp.Navigate(path)); err != nil {
		tab.t.Fatalf("opening %s: %v", path, err)
	}
	tab.Settle()
}

// Reload loads the page again.
func (tab *Tab) Reload() {
	tab.t.Helper()
	if err := tab.do(chromedp.Reload()); err != nil {
		tab.t.Fatal(err)
	}
	tab.Settle()
}

// Back goes to the page before, which is at path, as it was left.
func (tab *Tab) Back(path string) {
	tab.t.Helper()
	tab.JS("(history.back(), true)", new(bool))
	tab.At(path)
}

// Settle waits until the page is still: loaded, with its fonts, and nothing
// under way but what stays open.
func (tab *Tab) Settle() {
	tab.t.Helper()
	tab.until("the page to be still", "still()", func(still bool) bool { return still })
}

// Path is where the tab is, with its query.
func (tab *Tab) Path() string {
	var path string
	_ = tab.ask("location.pathname + location.search", &path) // empty on a page that is gone
	return path
}

// Text is what can be read on the page.
func (tab *Tab) Text() string {
	var text string
	_ = tab.ask("document.body ? document.body.innerText : ''", &text)
	return text
}

// See waits until the page says all of these.
func (tab *Tab) See(words ...string) {
	tab.t.Helper()
	for _, w := range words {
		tab.until(fmt.Sprintf("the page to say %q", w), "says("+quoted(w)+")", func(says bool) bool { return says })
	}
}

// Gone waits until the page does not say it.
func (tab *Tab) Gone(words string) {
	tab.t.Helper()
	tab.until(fmt.Sprintf("the page not to say %q", words), "says("+quoted(words)+")", func(says bool) bool { return !says })
}

// At waits until the tab is at a path, whatever the query.
func (tab *Tab) At(path string) {
	tab.t.Helper()
	tab.until("to be at "+path, "location.pathname === "+quoted(path)+" && still()", func(there bool) bool { return there })
}

// Under waits until the tab is at a path that begins so.
func (tab *Tab) Under(path string) {
	tab.t.Helper()
	tab.until("to be under "+path, "location.pathname.startsWith("+quoted(path)+") && still()", func(there bool) bool { return there })
}

// JS evaluates an expression on the page into out.
func (tab *Tab) JS(expression string, out any) {
	tab.t.Helper()
	if err := tab.ask(expression, out); err != nil {
		tab.t.Fatalf("%s: %v", expression, err)
	}
}

// NoScript turns scripts off for pages that are opened from now on.
func (tab *Tab) NoScript() {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		tab.t.Fatal(err)
	}
}

// For is the same tab for a test within the test.
func (tab *Tab) For(t testing.TB) *Tab {
	within := *tab
	within.t = t
	return &within
}

// Uncached makes the browser fetch everything anew on every page.
func (tab *Tab) Uncached() {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		tab.t.Fatal(err)
	}
}

// Width makes the tab that wide, in CSS pixels.
func (tab *Tab) Width(px int64) {
	tab.t.Helper()
	if err := tab.size(px); err != nil {
		tab.t.Fatal(err)
	}
}

func (tab *Tab) size(px int64) error {
	height := int64(900)
	if px == Phone {
		height = 844
	}
	return tab.do(chromedp.EmulateViewport(px, height))
}

// Dark says which theme the person's system has.
func (tab *Tab) Dark(dark bool) {
	tab.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		tab.t.Fatal(err)
	}
}

func (tab *Tab) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, done := context.WithTimeout(tab.ctx, patience)
	defer done()
	return chromedp.Do(ctx, steps...)
}

// ask evaluates an expression, with the words of find.js at hand. It leaves
// nothing behind on the page.
func (tab *Tab) ask(expression string, out any) error {
	ctx, done := context.WithTimeout(tab.ctx, patience)
	defer done()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte]("(()=>{"+find+"\nreturn ("+expression+");})()"))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// until asks again and again. A page that is being left answers with an error,
// which counts as not yet.
func (tab *Tab) until(what, expression string, enough func(bool) bool) {
	tab.t.Helper()
	deadline := time.Now().Add(patience)
	var last error
	for time.Now().Before(deadline) {
		var got bool
		if last = tab.ask(expression, &got); last == nil && enough(got) {
			return
		}
		if errors.Is(tab.ctx.Err(), context.Canceled) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	tab.t.Fatalf("waited %s for %s: %v", patience, what, last)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string always can be
	return string(raw)
}
