package browser

import "testing"

func TestOfOneFormInTwoTabsOneThingIsMade(t *testing.T) {
	tab, _ := owner(t)
	tab.Open("/keys/new")
	tab.Choose("Customer", "Ada's Apps")
	tab.Fill("Name", "Sent twice")
	second := tab.Beside()
	second.Open("/keys")
	tab.Press("Make the key")
	tab.See("This key is shown once")
	tab.Press("I have stored it") // leaving asks otherwise
	tab.Back("/keys/new")
	tab.Press("Make the key")
	tab.See("This key was made already")
	second.Reload()
	var made int
	second.JS(`document.body.innerText.split("Sent twice").length - 1`, &made)
	if made != 1 {
		t.Errorf("%d keys were made", made)
	}
}

func TestADraftInTwoTabsIsNotLostSilently(t *testing.T) {
	tab, w := owner(t)
	edit := "/plans/" + w.Plan + "/edit"
	tab.Open(edit)
	second := tab.Beside()
	second.Open(edit)

	tab.Fill("Limit 1, amount", "600")
	tab.Press("Keep as draft")
	tab.See("600 requests a minute")

	second.Fill("Limit 1, amount", "700")
	second.Press("Keep as draft")
	second.See("Somebody changed this plan since you opened it")
	if got := second.Value("Limit 1, amount"); got != "700" {
		t.Errorf("what was typed became %q", got)
	}
	tab.Reload()
	tab.See("600 requests a minute")
	second.Press("Keep as draft") // having been told
	second.See("700 requests a minute")
}

func TestAFormThatComesAfterItsSessionIsNotLost(t *testing.T) {
	tab, w := owner(t)
	tab.Open("/customers/new")
	tab.Fill("Name", "Kestrel Apps")
	tab.Fill("E-mail", "ops@kestrel.example")
	second := tab.Beside()
	second.Open("/")
	second.Press("Sign out")
	second.At("/sign-in")

	tab.Press("Make the customer")
	tab.See("Your session had ended", "what you typed is kept")
	a, err := weir.Admin(t.Context(), "sign-in-link", "--email", "owner@example.com", "--tenant", w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	signIn(second, a.Text("sign_in_link"))
	tab.Press("Send it again")
	tab.Under("/customers/")
	tab.See("Kestrel Apps", "ops@kestrel.example")
}
