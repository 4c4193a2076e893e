package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/test/browser/chrome"
	"weir/test/browser/site"
	"weir/test/stack"
)

// seller has a brand, and a customer that has called.
func seller(t *testing.T) stack.World {
	t.Helper()
	w := weir.Setup(t, stack.Options{
		Plan:   []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 500}, {Dimension: "tokens", Window: "day", Amount: 100_000}},
		Prices: []stack.Price{{Models: "practice-*", Class: "input", MicrosPerMillion: 2_500_000}},
	})
	weir.Want(t, 200, "PATCH", "/api/v1/branding", w.ManagementKey, `{"display_name": "Acme AI", "hue": "plum", "legal_line": "Acme AI Ltd, Leeds", "support_email": "help@example.com"}`)
	for range 3 {
		weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, `{"model": "practice-small", "messages": [{"role": "user", "content": "What is a weir?"}]}`)
	}
	return w
}

func TestEveryPageOfTheCustomersPortalIsKnownAndSound(t *testing.T) {
	w := seller(t)
	link := weir.Want(t, 200, "POST", "/api/v1/customers/"+w.Customer+"/portal-link", w.ManagementKey, `{"send": false}`).Text("sign_in_url")
	tab := visitor(t)
	tab.Open(link)
	tab.Press("Sign in")
	tab.At("/portal")
	var pages []site.Page
	stack.Eventually(t, 20*time.Second, func() string { // until the calls are in the books
		pages = site.Walk(tab, "/portal")
		var shapes []string
		for _, p := range pages {
			shapes = append(shapes, p.Shape)
		}
		if got, want := strings.Join(shapes, " "), strings.Join(site.Portal, " "); got != want {
			return fmt.Sprintf("links lead to %s, not to %s", got, want)
		}
		return ""
	})
	sound(t, tab, pages)
}

func TestAQuotesPublicPageIsSoundWhateverBecameOfIt(t *testing.T) {
	w := seller(t)
	path := func(then ...string) string {
		quote := "/api/v1/quotes/" + weir.Want(t, 201, "POST", "/api/v1/quotes", w.ManagementKey, fmt.Sprintf(
			`{"plan": %q, "note": "As we said on the phone.", "to": {"name": "Adaeze Finch", "email": "adaeze@example.com", "company": "Marlow & Finch"}}`, w.Plan)).Text("id")
		sent := weir.Want(t, 200, "POST", quote+"/send", w.ManagementKey, `{}`)
		_, token, _ := strings.Cut(sent.Text("public_url"), "/q/")
		for _, what := range then {
			verb, what, _ := strings.Cut(what, " ")
			what, body, _ := strings.Cut(what, " ")
			if verb == "PUBLIC" {
				weir.Want(t, 200, "POST", "/q/"+token+what, "", body)
			} else {
				weir.Want(t, 200, verb, quote+what, w.ManagementKey, body)
			}
		}
		return "/q/" + token
	}
	next := []string{`PATCH  {"note": "A better one."}`, "POST /send {}"}
	sound(t, visitor(t), []site.Page{
		{Shape: "open", Path: path()},
		{Shape: "next version", Path: path(next...)},
		{Shape: "superseded", Path: path(next...) + "?version=1"},
		{Shape: "withdrawn", Path: path("POST /withdraw {}")},
		{Shape: "declined", Path: path(`PUBLIC /decline {"reason": "too little a minute"}`)},
		{Shape: "accepted", Path: path(`PUBLIC /accept {"name": "Adaeze Finch", "email": "adaeze@example.com"}`)},
	})
	t.Run("just accepted", func(t *testing.T) {
		tab := visitor(t)
		tab.Open(path())
		tab.Fill("Your name", "Adaeze Finch")
		tab.Fill("E-mail", "adaeze@example.com")
		tab.Press("I may sign for")
		tab.Press("Accept")
		tab.See("Your first API key")
		accessible(t, tab, "light")
		for _, width := range []int64{chrome.Desktop, chrome.Tablet, chrome.Phone} {
			tab.Width(width)
			narrow(t, tab)
		}
		tab.Dark(true)
		accessible(t, tab, "dark, 390 px")
	})
}
