// Package chrome drives a real Chromium as a person would: by the words on
// buttons and beside fields, by mouse and keys at their places, and by what can
// be read.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// Browser is one process of Chromium. It is safe for concurrent use.
type Browser struct {
	ctx context.Context
	end []context.CancelFunc
}

// Start starts Chromium without a window. CHROME, where it is set, is the path
// of the program. Close ends it.
func Start() (*Browser, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
	)
	if path := os.Getenv("CHROME"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // the sandbox refuses to run as root
	}
	allocated, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endBrowser := chromedp.NewContext(allocated)
	b := &Browser{ctx: ctx, end: []context.CancelFunc{endBrowser, endAllocator}}
	if err := chromedp.Do(ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("chromium does not start: %w; `make test-browser` installs it on Debian and Ubuntu, elsewhere set CHROME to its path", err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() {
	for _, end := range b.end {
		end()
	}
}

// Tab opens a tab for somebody whom base has never seen: no cookies, nothing
// cached. It closes with the test, which fails where a page broke its policy or
// a script failed.
func (b *Browser) Tab(t testing.TB, base string) *Tab {
	t.Helper()
	return open(t, b.ctx, base, chromedp.WithNewBrowserContext())
}

// Beside opens another tab of the same person.
func (tab *Tab) Beside() *Tab {
	tab.t.Helper()
	return open(tab.t, tab.browser, tab.base, chromedp.WithExistingBrowserContext(tab.person))
}

func open(t testing.TB, browser context.Context, base string, option chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, option)
	tab := &Tab{t: t, ctx: ctx, browser: browser, base: base, seen: &seen{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page at last, %s:\n%.3000s", tab.Path(), tab.Text())
		}
		for _, trouble := range tab.Trouble() {
			t.Error("the browser says:", trouble)
		}
		end()
	})
	if err := errors.Join(tab.watch(), tab.size(Desktop)); err != nil {
		t.Fatal(err)
	}
	tab.person = cdp.BrowserContextID(chromedp.FromContext(ctx).BrowserContextID)
	return tab
}
