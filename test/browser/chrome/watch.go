package chrome

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	devlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// seen is what the browser has told about a tab.
type seen struct {
	mu      sync.Mutex
	trouble []string
	bytes   float64
}

// fresh begins to count bytes anew.
func (s *seen) fresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = 0
}

// shifts adds up how far the page has moved by itself, as the browser scores
// it (Layout Instability: web.dev/cls).
const shifts = `window.weirShift = { Score: 0, Moved: [] };
new PerformanceObserver((list) => {
  for (const e of list.getEntries()) {
    if (e.hadRecentInput) continue;
    weirShift.Score += e.value;
    for (const s of e.sources) if (s.node) weirShift.Moved.push((s.node.nodeName + "." + (s.node.className || "")).toLowerCase());
  }
}).observe({ type: "layout-shift", buffered: true });`

// watch listens to what the browser says about the tab.
func (tab *Tab) watch() error {
	if err := chromedp.Do(tab.ctx); err != nil {
		return err
	}
	if err := chromedp.Listen(tab.ctx, tab.seen.note); err != nil {
		return err
	}
	if _, err := chromedp.Call(tab.ctx, devlog.Enable, cdp.Empty{}); err != nil {
		return err
	}
	if _, err := chromedp.Call(tab.ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	_, err := chromedp.Call(tab.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: shifts})
	return err
}

func (s *seen) note(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := event.(type) {
	case *network.EventLoadingFinished:
		s.bytes += e.EncodedDataLength
	case *runtime.EventExceptionThrown:
		d := e.ExceptionDetails
		s.trouble = append(s.trouble, fmt.Sprintf("exception: %s %s:%d", d.Text, d.URL, d.LineNumber))
	case *devlog.EventEntryAdded:
		// A page that is meant to be missing is an error of the network's, too.
		if e.Entry.Level == devlog.EntryLevelError && e.Entry.Source != devlog.EntrySourceNetwork {
			s.trouble = append(s.trouble, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

// Trouble is what went wrong on the tab's pages: breaches of the content
// security policy, scripts that failed.
func (tab *Tab) Trouble() []string {
	tab.seen.mu.Lock()
	defer tab.seen.mu.Unlock()
	return slices.Clone(tab.seen.trouble)
}

// Bytes is what came over the network since the page was opened.
func (tab *Tab) Bytes() int {
	tab.seen.mu.Lock()
	defer tab.seen.mu.Unlock()
	return int(tab.seen.bytes)
}

// Shift is how far a page has moved by itself since it was opened, and what of
// it: 0 is still.
type Shift struct {
	Score float64
	Moved []string
}

// Shift says how far the page has moved. With scripts off nobody counts.
func (tab *Tab) Shift() Shift {
	tab.t.Helper()
	var s Shift
	tab.JS("window.weirShift || {}", &s)
	return s
}

// Inner is how wide the window is, in CSS pixels.
func (tab *Tab) Inner() (px int) {
	tab.t.Helper()
	tab.JS("innerWidth", &px)
	return px
}

// reach is how far something reaches past the right edge.
type reach struct {
	Name string
	By   float64
}

// Overflow is what reaches past the right edge of the window, and by how many
// pixels; "" when nothing does.
func (tab *Tab) Overflow() string {
	tab.t.Helper()
	var wide []reach
	tab.JS(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.body.querySelectorAll("*")].map((e) => ({Name: e.tagName.toLowerCase() + "." + (e.getAttribute("class") || ""), By: e.getBoundingClientRect().right - innerWidth})).filter((e) => e.By > 0.5)`, &wide)
	if len(wide) == 0 {
		return ""
	}
	worst := slices.MaxFunc(wide, func(a, b reach) int { return cmp.Compare(a.By, b.By) })
	return fmt.Sprintf("%s by %.0f px", worst.Name, worst.By)
}

// Hidden is what a box keeps out of sight, where one has to scroll inside it or
// can't at all, and by how many pixels. Code may scroll, and so may the table
// that tells a chart in figures once it is unfolded; a cut with "…" shows that
// there is more, and what is there for screen readers alone is meant to be out of
// sight.
func (tab *Tab) Hidden() []string {
	tab.t.Helper()
	var boxes []reach
	tab.JS(`[...document.body.querySelectorAll("*")].filter((e) => {
	const s = getComputedStyle(e)
	return e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && s.overflowX !== "visible" && s.display !== "inline" && s.visibility === "visible" &&
		s.textOverflow !== "ellipsis" && !e.closest("pre, .code, textarea, input, select, .sr, .twin")
}).map((e) => ({Name: e.tagName.toLowerCase() + "." + (e.getAttribute("class") || "") + " in " + (e.closest("[id]")?.id || "the page"), By: e.scrollWidth - e.clientWidth}))`, &boxes)
	out := make([]string, len(boxes))
	for i, b := range boxes {
		out[i] = fmt.Sprintf("%s by %.0f px", b.Name, b.By)
	}
	return out
}
