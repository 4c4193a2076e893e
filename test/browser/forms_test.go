package browser

import (
	"maps"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// wrong is a form with something in it that is not right.
type wrong struct {
	name, path string
	first      []string          // to press before
	fill       map[string]string // by the fields' labels
	send       string            // the button; "": Enter
	says       []string          // at the field
	lost       []string          // fields that a page never sends back
}

var wrongForms = []wrong{
	{name: "a customer without a name", path: "/customers/new", fill: map[string]string{"E-mail": "ops@kestrel", "Your own id for it": "crm-77"}, send: "Make the customer", says: []string{"needed"}},
	{name: "a plan with words for a number", path: "/plans/new", fill: map[string]string{"Name": "Gusty", "Limit 1, amount": "lots", "Limit 2, amount": "200,000"}, send: "Keep as draft", says: []string{"whole number"}},
	{name: "a provider key at no address", path: "/providers/new?provider=custom", fill: map[string]string{"Name": "Own", "Base URL": "ftp://nowhere", "Key": "sk-secret"}, send: "Check and add", says: []string{"https"}, lost: []string{"Key"}},
	{name: "a key for nobody", path: "/keys/new", fill: map[string]string{"Name": "Night batch"}, send: "Make the key", says: []string{"Choose"}},
	{name: "a key from a place that is none", path: "/keys/new", first: []string{"Narrower than the plan"}, fill: map[string]string{"Name": "Night batch", "Models": "gpt-4o*", "Addresses": "the office"}, send: "Make the key", says: []string{"address"}},
	{name: "a management key that may nothing", path: "/keys/new/management", fill: map[string]string{"Name": "Billing export"}, send: "Make the key", says: []string{"scope"}},
	{name: "an alias of itself", path: "/models/aliases/new", fill: map[string]string{"Name": "acme-fast", "Candidate 1, model": "acme-fast"}, send: "Save", says: []string{"the alias itself"}},
	{name: "a pool of no keys", path: "/providers/pools/new", fill: map[string]string{"Name": "account"}, send: "Save", says: []string{"Tick at least one key"}},
	{name: "a call that is too hot", path: "/playground", fill: map[string]string{"Temperature": "9", "User": "Hello"}, send: "Send", says: []string{"from 0 to 2"}},
	{name: "an organisation without a name", path: "/settings", fill: map[string]string{"Name": " "}, says: []string{"A name is needed"}},
}

func TestFormsWithWrongInputKeepWhatWasTyped(t *testing.T) {
	tab, _ := owner(t)
	for _, w := range wrongForms {
		t.Run(w.name, func(t *testing.T) {
			tab := tab.For(t)
			tab.Open(w.path)
			for _, words := range w.first {
				tab.Press(words)
			}
			for _, label := range slices.Sorted(maps.Keys(w.fill)) {
				tab.Fill(label, w.fill[label])
			}
			if w.send == "" {
				tab.Keys(kb.Enter)
			} else {
				tab.Press(w.send)
			}
			tab.See("not right yet. Nothing was changed.")
			tab.See(w.says...)
			for label, typed := range w.fill {
				if got := tab.Value(label); got != typed && !slices.Contains(w.lost, label) {
					t.Errorf("%s was %q and is %q", label, typed, got)
				}
			}
			for _, v := range tab.Axe() {
				t.Error("with errors: ", v)
			}
		})
	}
}
