package browser

import (
	"strings"
	"testing"
)

// Somebody who has never seen Weir signs up, walks the path of the first five
// minutes with the practice provider, and needs nothing but the browser and one
// HTTP call: the one that the page shows, as it stands there.
func TestTheFirstFiveMinutesNeedABrowserAndOneCall(t *testing.T) {
	tab := visitor(t)
	tab.Open("/sign-up")
	tab.Fill("Your name", "Ada Byron")
	tab.Fill("E-mail", "ada@engine.example")
	tab.Fill("Password", "a few words in a row")
	tab.Fill("Organisation", "Analytical Engines")
	if zone := tab.Value("Time zone"); zone == "" {
		t.Error("the zone is not guessed")
	}
	tab.Press("Sign up")
	tab.See("Look into your mail")
	tab.Press("Open the outbox")
	tab.See("ada@engine.example")
	var link string
	tab.JS(`[...document.querySelectorAll("a")].map((a) => a.href).find((h) => h.includes("/confirm"))`, &link)
	tab.Open(link)
	tab.Press("Make my account")
	tab.At("/setup")

	tab.Press("Use the practice provider")
	tab.See("Requests a minute")
	if got := tab.Value("Requests a minute") + " " + tab.Value("Tokens a minute"); got != "500 200,000" && got != "500 200000" {
		t.Errorf("the plan begins with %s, not with 500 and 200,000", got)
	}
	tab.Fill("Requests a minute", "300")
	tab.See("300 requests and 200,000 tokens a minute", "599") // the sentence, and the most in any 60 seconds
	tab.Press("Publish the plan")
	tab.Press("Make the customer and its key")

	tab.See("Waiting for the first call")
	var call string
	tab.JS(`document.querySelector("#call-curl").innerText`, &call)
	if answer := run(t, call); !strings.Contains(answer, `"total_tokens"`) {
		t.Fatalf("the call was pasted and answered %s", answer)
	}
	tab.See("The first call arrived", "tokens") // by itself: nothing is reloaded
	tab.Press("Go on")

	tab.Press("Trip a limit on purpose")
	tab.See("A key of one request a minute was made")
	var trip string
	tab.JS(`document.querySelector("#trip").innerText`, &trip)
	run(t, trip)
	tab.See("429", "retry-after", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests")
	tab.Press("Go on")
	tab.See("Be told in time")
	tab.Press("Tell me")
	tab.See("Everything is in place")
	tab.Press("To the dashboard")
	tab.At("/")
	tab.Gone("Go on with the set-up")
}
