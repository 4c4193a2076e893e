package browser

import (
	"strings"
	"testing"

	"weir/test/browser/site"
)

// Whoever has no scripts reads the same figures, and can send the same forms.
func TestEveryPageReadsTheSameWithoutScripts(t *testing.T) {
	with := busy(t)
	pages := site.Walk(with, "/")
	without := with.Beside()
	without.NoScript()
	for _, p := range pages {
		t.Run(site.Name(p.Shape), func(t *testing.T) {
			with, without := with.For(t), without.For(t)
			with.Open(p.Path)
			without.Open(p.Path)
			a, b := headings(with), headings(without)
			if a != b {
				t.Errorf("with scripts the page says\n%s\nand without\n%s", a, b)
			}
			if over := without.Overflow(); over != "" {
				t.Errorf("it scrolls sideways: %s", over)
			}
		})
	}
}

// headings are the titles of a page and of its parts, and how many rows of
// figures it shows.
func headings(tab interface{ JS(string, any) }) string {
	var all []string
	tab.JS(`[...document.querySelectorAll("main h1, main h2, main th[scope=row], main dt")].filter(shows).map((e) => squeeze(e.innerText)).filter((s) => !/\d/.test(s))`, &all)
	return strings.Join(all, "\n")
}

func TestACustomerIsMadeWithoutScripts(t *testing.T) {
	tab := newcomer(t)
	tab.NoScript()
	tab.Open("/customers")
	tab.Press("New customer")
	tab.At("/customers/new")
	tab.Fill("Name", "Heron Labs")
	tab.Press("Make the customer")
	tab.See("Heron Labs")
	tab.Open("/plans/new")
	tab.Fill("Name", "Brook")
	tab.Fill("Limit 1, amount", "120")
	tab.Press("Preview")
	tab.See("120 requests a minute")
}
