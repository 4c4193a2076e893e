package portal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/branding"
	"weir/internal/notify"
)

// linkMail is the mail with one link; whom to and which link is the caller's.
func linkMail(tenant, customer, url string, why Why) notify.Mail {
	begin := fmt.Sprintf("here is the way to the limits, usage and keys of %s at %s:", customer, tenant)
	if why == Accepted {
		begin = fmt.Sprintf("thank you. The limits that %s agreed with %s are in force. They, the usage and the keys of %s are here:", customer, tenant, customer)
	}
	lasts := "works once, for 30 minutes"
	if why.Lifetime() > time.Hour {
		lasts = "works once, for 7 days"
	}
	return notify.Mail{Subject: oneLine("Your limits and keys at " + tenant), Text: fmt.Sprintf(`Hello,

%s

%s

The link %s. Ask for another one at any time: %s/portal/sign-in

If you did not expect this mail, do nothing: without the link nobody gets in.
`, begin, notify.LinkHere, lasts, url)}
}

// way is one of the links that somebody asked for.
type way struct {
	Tenant        uuid.UUID
	Brand         branding.Brand
	Customer, URL string
}

// askedMail is the answer to who asked for links: the tenant's letter where all
// are of one.
func askedMail(email, url string, ways []way, at time.Time) notify.Mail {
	var list strings.Builder
	for _, w := range ways {
		fmt.Fprintf(&list, "%s at %s:\n%s\n\n", w.Customer, w.Brand.Name(), w.URL)
	}
	subject := "Your sign-in link"
	if len(ways) > 1 {
		subject = fmt.Sprintf("Your %d sign-in links", len(ways))
	}
	m := notify.Mail{To: email, Subject: subject, At: at, Text: fmt.Sprintf(`Hello,

here is what you asked for. Each link works once, for 30 minutes.

%sAsk for another one at any time: %s/portal/sign-in

If you did not ask for this, do nothing: without the link nobody gets in.
`, list.String(), url)}
	if slices.ContainsFunc(ways, func(w way) bool { return w.Tenant != ways[0].Tenant }) {
		return m
	}
	return ways[0].Brand.Letter(m)
}

// oneLine is a subject of at most 150 characters.
func oneLine(s string) string {
	if r := []rune(s); len(r) > 150 {
		return string(r[:149]) + "…"
	}
	return s
}
