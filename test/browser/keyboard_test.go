package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Nothing here touches the mouse, and every focus on the way can be seen.
func TestAPlanIsMadeByKeysAlone(t *testing.T) {
	w := weir.Tenant(t, "UTC")
	tab := visitor(t)
	tab.Open(w.SignInLink)
	tab.TabTo("Sign in")
	tab.Keys(kb.Enter)
	tab.See("Home")

	tab.Open("/plans")
	tab.TabTo("Skip to content")
	tab.Keys(kb.Enter)
	tab.TabTo("Make the first plan")
	tab.Keys(kb.Enter)
	tab.At("/plans/new")
	tab.TabTo("Name")
	tab.Type("Brook")
	tab.TabTo("Limit 1, amount")
	tab.Type("120")
	tab.See("120 requests a minute")
	tab.Keys(kb.Enter) // in a field: saves
	tab.See("Brook", "draft")
	tab.TabTo("Publish version 1")
	tab.Keys(kb.Enter)
	tab.Gone("version 1 draft")
	tab.See("published")
}

func TestTheSearchOverEverythingNeedsKeysAlone(t *testing.T) {
	tab, _ := owner(t)
	tab.Open("/usage")
	tab.TabTo("Skip to content")
	tab.Keys("k", chromedp.ModifierCtrl)
	tab.Type("Ada's")
	tab.Found("Ada's")
	for _, v := range tab.Axe() {
		t.Errorf("the search with results: %s", v)
	}
	tab.Keys(kb.ArrowDown)
	tab.Keys(kb.ArrowUp)
	tab.Keys(kb.Enter)
	tab.Under("/customers/")
	tab.Keys("k", chromedp.ModifierCtrl)
	tab.Type("nothing is called so")
	tab.See("Nothing")
	tab.Keys(kb.Escape)
	tab.Gone("nothing is called so")
}

func TestAQuestionClosesByEscapeAndGivesTheFocusBack(t *testing.T) {
	tab, _ := owner(t)
	tab.Open("/keys")
	tab.TabTo("Revoke")
	tab.Keys(kb.Enter)
	tab.See("stops working")
	tab.Keys(kb.Escape)
	tab.Gone("stops working")
	var on string
	tab.JS(`squeeze(document.activeElement.innerText)`, &on)
	if on != "Revoke" {
		t.Errorf("the focus is on %q after Escape", on)
	}
}
