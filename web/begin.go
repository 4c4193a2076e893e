package web

import "strings"

// beginStep is one thing to do before a first call, with the lines to paste.
type beginStep struct {
	Title, Text, Code string
	Done              bool
}

// begin are the steps to a first call; none when both ends are there. The lines
// run as they stand, one step after another in one shell, once the management
// key is filled in.
func begin(publicURL string, provider, customerKey bool) []beginStep {
	if provider && customerKey {
		return nil
	}
	base := strings.NewReplacer("{url}", publicURL)
	return []beginStep{
		{
			Title: "Say where, and as whom", Code: base.Replace(beginAs),
			Text: "The management key was printed when this tenant was made. Put it into the second line.",
		},
		{
			Title: "Add a provider key", Code: beginProvider, Done: provider,
			Text: "The practice provider is built in, needs no secret and is never billed. For a real one: openai with its secret, or custom with a base_url.",
		},
		{
			Title: "Make a plan, a customer and its key", Code: beginCustomer, Done: customerKey,
			Text: "The plan says what the customer may use. The key's secret is in the last answer and nowhere else; the line keeps it in KEY.",
		},
		{
			Title: "Make the call", Code: beginCall,
			Text: "What it used stands on this page a second or two later. An official OpenAI SDK does the same with this base URL and key.",
		},
	}
}

const beginAs = `WEIR={url}
WEIR_KEY=weir_live_...
api() { curl -sS "$WEIR/api/v1/$1" -H "Authorization: Bearer $WEIR_KEY" -H "Content-Type: application/json" -d "$2"; }
first_id() { grep -o '"id":"[^"]*' | head -n 1 | cut -c 7-; }`

const beginProvider = `api provider-keys '{"provider": "practice", "name": "Practice"}'`

const beginCustomer = `PLAN=$(api plans '{"name": "Starter", "limits": [{"dimension": "requests", "window": "minute", "amount": 60}, {"dimension": "tokens", "window": "day", "amount": 1000000}]}' | first_id)
api "plans/$PLAN/publish" ''
CUSTOMER=$(api customers '{"name": "First customer"}' | first_id)
api subscriptions '{"customer": "'$CUSTOMER'", "plan": "'$PLAN'"}'
KEY=$(api api-keys '{"kind": "customer", "customer": "'$CUSTOMER'", "name": "First key"}' | grep -o 'weir_live_[0-9A-Za-z]*')`

const beginCall = `curl -sS "$WEIR/v1/chat/completions" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"model": "practice-small", "messages": [{"role": "user", "content": "Hello"}]}'`
