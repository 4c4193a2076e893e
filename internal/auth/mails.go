package auth

import (
	"fmt"
	"time"

	"weir/internal/notify"
)

func signUpMail(n NewAccount, url, link string, known bool, at time.Time) notify.Mail {
	if known {
		return notify.Mail{To: n.Email, Subject: "You have a Weir account already", At: at, Text: fmt.Sprintf(`Hello,

somebody, probably you, signed up to Weir with this address. It has an account already.

Sign in:            %[1]s/sign-in
Forgot your password? %[1]s/forgot

To add the new organisation "%[3]s" to your account, open this link within 24 hours:
%[1]s/confirm/%[2]s

If it was not you, do nothing.
`, url, link, n.Tenant)}
	}
	return notify.Mail{To: n.Email, Subject: "Confirm your address", At: at, Text: fmt.Sprintf(`Hello %s,

open this link within 24 hours to make "%s" on Weir:
%s/confirm/%s

If you did not sign up, do nothing.
`, n.Name, n.Tenant, url, link)}
}

func resetMail(email, url, link string, at time.Time) notify.Mail {
	return notify.Mail{To: email, Subject: "Set a new password", At: at, Text: fmt.Sprintf(`Hello,

open this link within 30 minutes to set a new password:
%s/reset/%s

If you did not ask for it, do nothing: your password stays as it is.
`, url, link)}
}

func changedMail(email, url string, at time.Time) notify.Mail {
	return notify.Mail{To: email, Subject: "Your password was changed", At: at, Text: fmt.Sprintf(`Hello,

your Weir password was changed at %s, and every other session was ended.

If it was not you, set a new one at once: %s/forgot
`, at.UTC().Format("2 January 2006, 15:04 UTC"), url)}
}
