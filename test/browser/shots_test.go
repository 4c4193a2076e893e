//go:build screenshots

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"weir/test/browser/chrome"
	"weir/test/browser/site"
	"weir/test/stack"
)

// TestScreenshots writes every page at three widths in both themes, to be looked
// at: as a busy tenant sees it, as a new one does, and from outside.
func TestScreenshots(t *testing.T) {
	out := filepath.Join(stack.Root(), "screenshots")
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	inside := busy(t)
	shoot(t, inside, filepath.Join(out, "busy"), site.Walk(inside, "/"))
	fresh := newcomer(t)
	shoot(t, fresh, filepath.Join(out, "new"), site.Walk(fresh, "/"))
	var outside []site.Page
	for _, path := range site.Outside {
		outside = append(outside, site.Page{Shape: path, Path: path})
	}
	shoot(t, visitor(t), filepath.Join(out, "outside"), outside)
}

func shoot(t *testing.T, tab *chrome.Tab, dir string, pages []site.Page) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for _, width := range []int64{chrome.Phone, chrome.Tablet, chrome.Desktop} {
			for _, theme := range []string{"light", "dark"} {
				tab.Width(width)
				tab.Dark(theme == "dark")
				tab.Open(p.Path)
				file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", site.Name(p.Shape), width, theme))
				if err := os.WriteFile(file, tab.Picture(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
