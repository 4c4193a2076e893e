package browser

import (
	"fmt"
	"slices"
	"testing"

	"weir/test/browser/chrome"
	"weir/test/browser/site"
)

const (
	heaviest = 250_000 // bytes over the network, nothing cached
	steady   = 0.02    // of layout shift
)

func TestEveryPageBehindSignInIsKnown(t *testing.T) {
	fresh := newcomer(t)
	var shapes []string
	for _, p := range append(site.Walk(busy(t), "/"), site.Walk(fresh, "/")...) {
		shapes = append(shapes, p.Shape)
	}
	for _, s := range shapes {
		if !slices.Contains(site.Inside, s) {
			t.Errorf("%s is not in site.Inside", s)
		}
	}
	for _, s := range site.Inside {
		if !slices.Contains(shapes, s) {
			t.Errorf("no link leads to %s", s)
		}
	}
}

// Each page, in both themes and at three widths: no violation of WCAG 2.2 AA, no
// breach of the content security policy, nothing that reaches past the edge,
// nothing that jumps, and not too heavy.
func TestEveryPageIsSound(t *testing.T) {
	inside := busy(t)
	t.Run("inside", func(t *testing.T) { sound(t, inside.For(t), site.Walk(inside, "/")) })
	fresh := newcomer(t)
	t.Run("empty", func(t *testing.T) { sound(t, fresh.For(t), site.Walk(fresh, "/")) })
	t.Run("outside", func(t *testing.T) {
		var pages []site.Page
		for _, path := range site.Outside {
			pages = append(pages, site.Page{Shape: path, Path: path})
		}
		sound(t, visitor(t), pages)
	})
}

func sound(t *testing.T, tab *chrome.Tab, pages []site.Page) {
	tab.Uncached()
	for _, p := range pages {
		t.Run(site.Name(p.Shape), func(t *testing.T) {
			tab := tab.For(t)
			tab.Dark(false)
			tab.Width(chrome.Desktop)
			tab.Open(p.Path)
			if b := tab.Bytes(); b > heaviest {
				t.Errorf("it weighs %d bytes, more than %d", b, heaviest)
			}
			still(t, tab, "1440 px", p.Path)
			narrow(t, tab)
			accessible(t, tab, "light")
			tab.Dark(true)
			accessible(t, tab, "dark")
			tab.Dark(false)
			for _, width := range []int64{chrome.Tablet, chrome.Phone} {
				tab.Width(width)
				tab.Open(p.Path)
				still(t, tab, fmt.Sprint(width, " px"), p.Path)
				narrow(t, tab)
			}
			accessible(t, tab, "light, 390 px")
		})
	}
}

// narrow holds a page to the width of its window, and each box to what is in it.
func narrow(t *testing.T, tab *chrome.Tab) {
	t.Helper()
	if over := tab.Overflow(); over != "" {
		t.Errorf("at %d px it scrolls sideways: %s", tab.Inner(), over)
	}
	for _, box := range tab.Hidden() {
		t.Errorf("at %d px a box hides a part of what is in it: %s", tab.Inner(), box)
	}
}

// still holds a page to its place. A busy machine may hand a stylesheet or a
// font over late, once; what moves by itself moves every time.
func still(t *testing.T, tab *chrome.Tab, what, path string) {
	t.Helper()
	first := tab.Shift()
	if first.Score < steady {
		return
	}
	tab.Open(path)
	if again := tab.Shift(); again.Score >= steady {
		t.Errorf("%s: layout shift %.3f and then %.3f, at least %.2f: %v, %v", what, first.Score, again.Score, steady, first.Moved, again.Moved)
	}
}

func accessible(t *testing.T, tab *chrome.Tab, what string) {
	t.Helper()
	for _, v := range tab.Axe() {
		t.Errorf("%s: %s", what, v)
	}
}
