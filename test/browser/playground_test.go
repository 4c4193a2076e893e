package browser

import "testing"

// The answer comes without the page being left, and is explained; what was
// written stays, and the next call is made by the key that the first one made.
func TestThePlaygroundShowsAnAnswerInPlace(t *testing.T) {
	tab, _ := owner(t)
	tab.Open("/playground")
	tab.Choose("As", "a new test key for Ada's Apps")
	tab.Fill("User", "What is a weir?")
	tab.Press("Send")
	tab.See("200, passed", "Limits that moved", "as it began", "x-ratelimit-remaining-requests", "WEIR_KEY")
	if at, said := tab.Path(), tab.Value("User"); at != "/playground" || said != "What is a weir?" {
		t.Errorf("the page is %s, and asks %q", at, said)
	}
	for _, v := range tab.Axe() {
		t.Error("with an answer: ", v)
	}
	if over := tab.Overflow(); over != "" {
		t.Errorf("it scrolls sideways: %s", over)
	}
	tab.Press("Send")
	tab.See("32 before, 300 as it began, 64 now")
	tab.Press("Send 25 at once")
	tab.See("25 calls at once", "passed")
	for _, words := range tab.Trouble() {
		t.Error(words)
	}
}

func TestThePlaygroundAnswersWithoutScript(t *testing.T) {
	tab, _ := owner(t)
	tab.NoScript()
	tab.Open("/playground")
	tab.Press("Send")
	tab.See("200, passed", "Limits that moved")
}

func TestAnAliasIsArrangedInPlace(t *testing.T) {
	tab, _ := owner(t)
	tab.Open("/models/aliases/new?model=practice-small")
	tab.Fill("Name", "acme-fast")
	tab.Press("Add a line")
	tab.Fill("Candidate 2, model", "practice-large")
	tab.Press("Move line 2 up")
	tab.Settle()
	if first := tab.Value("Candidate 1, model"); first != "practice-large" {
		t.Fatalf("the first line is %q", first)
	}
	tab.Press("Save")
	tab.At("/models")
	tab.See("The alias is made.", "acme-fast", "practice-large")
}
