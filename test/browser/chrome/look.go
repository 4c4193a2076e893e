package chrome

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// axe is axe-core 4.14.1, as its npm package brings it (MPL 2.0).
//
//go:embed axe/axe.min.js
var axe string

// Violation is a rule of accessibility that a page breaks.
type Violation struct {
	ID    string
	Help  string
	Nodes []struct {
		Target         []any
		FailureSummary string
	}
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.ID, v.Help)
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "\n\t%v: %s", n.Target, strings.ReplaceAll(n.FailureSummary, "\n", " "))
	}
	return b.String()
}

// Axe holds the page to WCAG 2.2 A and AA.
func (tab *Tab) Axe() []Violation {
	tab.t.Helper()
	ctx, done := context.WithTimeout(tab.ctx, patience)
	defer done()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](axe+`;
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}).then((r) => r.violations)`, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatal(err)
	}
	var out []Violation
	if err := json.Unmarshal(raw, &out); err != nil {
		tab.t.Fatal(err)
	}
	return out
}

// Picture is the whole page as a PNG, in a window as tall as the page, so that
// what keeps to the window's edge is at the page's.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	var box struct{ Width, Height int64 }
	tab.JS(`{Width: innerWidth, Height: Math.max(innerHeight, document.documentElement.scrollHeight)}`, &box)
	if err := tab.do(chromedp.EmulateViewport(box.Width, min(box.Height, 16_000))); err != nil {
		tab.t.Fatal(err)
	}
	tab.Settle()
	ctx, done := context.WithTimeout(tab.ctx, patience)
	defer done()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tab.t.Fatal(err)
	}
	return png
}
