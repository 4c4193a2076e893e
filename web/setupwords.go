package web

import (
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/usage"
	"weir/web/ui"
)

func (v setupPage) heading() string {
	switch v.Open {
	case "provider":
		return "Where calls go"
	case "plan":
		return "What a customer may use"
	case "key":
		return "Whom you serve"
	case "call":
		return "Send the first call"
	case "refusal":
		return "See a refusal"
	case "alert":
		return "Be told in time"
	}
	return "Everything is in place"
}

func (v setupPage) lede() string {
	switch v.Open {
	case "provider":
		return "Six steps lead to a first call, a first refusal and an alert. A provider key comes first, or the practice provider."
	case "plan":
		return "Two numbers make a sentence; the sentence is what your customers read."
	case "key":
		return "One form makes a customer, puts it on the plan, and makes its key."
	case "call":
		return "Paste one of these into a terminal, and this page shows the tokens as soon as the call has ended."
	case "refusal":
		return "A limit is run into on purpose, through the gateway, as a customer would."
	case "alert":
		return "One press, and a mail comes before anybody is refused."
	}
	return "Nothing of it has to be done again. Each step can still be opened."
}

// whoCan tells who may take a step that the reader may not.
func (v setupPage) whoCan(step string) string {
	switch step {
	case "plan":
		return "An owner, an admin or somebody of billing makes plans."
	case "refusal":
		return "An owner, an admin or a developer makes such a key."
	case "alert":
		return "An owner, an admin or somebody of billing sets alerts."
	}
	return "An owner or an admin takes this step."
}

// providers are those that need a key, or an address.
func (v setupPage) providers() (out []ui.Option) {
	chosen := v.Get("provider")
	if chosen == "" {
		chosen = "openai"
	}
	for _, x := range catalogue.Providers() {
		if !x.Practice {
			out = append(out, ui.Option{Value: x.Slug, Label: x.Name, Chosen: x.Slug == chosen})
		}
	}
	return out
}

func requestHref(e usage.Event) string { return "/requests/" + id.Request.Format(e.RequestID) }
