package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// dones are what a page can say was done, by the word in its address.
var dones = map[string]string{
	"alert-added":         "The alert is made. What has passed its threshold already is told within seconds.",
	"alert-changed":       "The alert is changed.",
	"alert-removed":       "The alert is removed.",
	"webhook-changed":     "The endpoint is changed.",
	"webhook-removed":     "The endpoint is removed, and its secret forgotten.",
	"webhook-on":          "The endpoint is on. What was held meanwhile waits for a replay.",
	"webhook-off":         "The endpoint is off. What happens from now on is held for a replay.",
	"webhook-tested":      "A test is on its way. This page shows what became of it.",
	"webhook-resent":      "It is sent again, now.",
	"webhook-replayed":    "What the endpoint missed is sent again, now.",
	"provider-added":      "The key is stored, sealed.",
	"provider-rotated":    "The new key is checked and stored, sealed. Calls use it within a second.",
	"provider-off":        "The key is switched off. No new call uses it.",
	"provider-on":         "The key was checked, and is switched on.",
	"provider-checked":    "The provider was asked again.",
	"instance-retired":    "The instance is retired. Reports and caps wait for it no longer.",
	"letter-asked":        "A worker tries to count it. That takes a few seconds.",
	"day-asked":           "The day is being summed again from its calls. That takes a few seconds.",
	"cooling-cleared":     "It is cleared. Calls go out through it within a second.",
	"learned-forgotten":   "It is forgotten. The next answer that states it teaches it again.",
	"pool-added":          "The pool is made. Its keys count together within a second.",
	"pool-changed":        "The pool is changed, everywhere within a second. What is used stays used.",
	"pool-removed":        "The pool is taken apart. Its keys count by themselves again.",
	"alias-added":         "The alias is made. Calls may ask for it within a second.",
	"alias-changed":       "The alias is changed, everywhere within a second.",
	"alias-removed":       "The alias is gone. Calls that ask for its name are answered as for any other.",
	"provider-removed":    "The provider key is removed, and its secret forgotten.",
	"quote-saved":         "The draft is kept. Nobody outside sees it until it is sent.",
	"quote-sent":          "It is sent, and frozen. Its link is in the mail.",
	"quote-resent":        "Its link is mailed once more.",
	"quote-withdrawn":     "It is taken back. Its page says so from now on.",
	"quote-discarded":     "The draft is gone. What was sent stays as it is.",
	"plan-saved":          "The draft is kept. It changes nobody until it is published.",
	"plan-published":      "The version is published. Who is on an earlier one stays there.",
	"customer-once":       "This customer was made already: the form came a second time.",
	"customer-added":      "The customer is made. It needs a plan and a key before its first call.",
	"customer-subscribed": "The customer is made, and on the plan from now on. It needs a key before its first call.",
	"customer-alone":      "The customer is made, but could not be put on that plan. Choose one here.",
	"customer-saved":      "The customer is changed.",
	"customer-erased":     "The customer is erased. Its calls name nobody any more within minutes.",
	"customer-suspended":  "The customer is suspended. Its calls are refused within a second.",
	"customer-resumed":    "The customer is resumed. Its calls are let through within a second.",
	"moved":               "The customer is on the other plan from now on. What is used stays used.",
	"move-waits":          "The change waits for the period's end. Until then it can be taken back.",
	"stayed":              "The change is taken back. The customer stays on its plan.",
	"cancelled":           "The subscription ends with its period. Until then this can be taken back.",
	"kept":                "The cancellation is taken back.",
	"subscription-ended":  "The subscription has ended. Calls are refused within a second.",
	"past-due":            "It is marked as past due. Calls go on.",
	"settled":             "Nothing is owed any more.",
	"paused":              "The subscription is suspended. Its calls are refused within a second.",
	"unpaused":            "The subscription goes on. Its calls are let through within a second.",
	"override-added":      "The override is made. It holds everywhere within a second of its start.",
	"override-ended":      "The override has ended. The plan holds within a second.",
	"subscribed":          "The customer is on the plan from now on.",
	"profile-saved":       "Your name is changed.",
	"password-changed":    "Your password is changed, and your other sessions have ended.",
	"sessions-ended":      "Your other sessions have ended.",
	"brand-saved":         "Your brand is changed, on every page and mail from now on.",
	"logo-saved":          "The logo is there, drawn again by us.",
	"logo-removed":        "The logo is gone. Your name stands in its place.",
	"tenant-saved":        "The organisation is changed.",
	"zone-asked":          "The time zone is kept as you asked. Below is from when it counts.",
	"key-changed":         "The key is changed, everywhere within a second.",
	"provider-changed":    "The provider key is changed, everywhere within a second.",
	"export-asked":        "The file is being made. It is listed here, and this page says when it is ready.",
	"key-revoked":         "The key is revoked. It stops working within a second.",
}

// done leads to a page that says what was done.
func done(c echo.Context, path, what string) error {
	return c.Redirect(http.StatusSeeOther, path+"?done="+what)
}
