package branding

import (
	"cmp"
	"strings"

	"weir/internal/notify"
)

// Letter is a mail as the tenant sends it to a customer: from its name, answered
// to where it says, with its foot. The address that it comes from stays the
// installation's: mail from a tenant's own would fail the checks of its domain.
func (b Brand) Letter(m notify.Mail) notify.Mail {
	m.FromName, m.ReplyTo = cmp.Or(b.SenderName, b.Name()), cmp.Or(b.ReplyTo, b.SupportEmail)
	m.Text = strings.TrimRight(m.Text, "\n") + "\n\n-- \n" + strings.Join(b.foot(), "\n") + "\n"
	return m
}

// foot are the last lines of a mail.
func (b Brand) foot() []string {
	lines := []string{b.Name()}
	if b.LegalLine != "" {
		lines = append(lines, b.LegalLine)
	}
	if b.SupportEmail != "" {
		lines = append(lines, "Questions: "+b.SupportEmail)
	}
	if b.TermsURL != "" {
		lines = append(lines, "Terms: "+b.TermsURL)
	}
	if b.NamesWeir {
		lines = append(lines, "Limits and metering by Weir")
	}
	return lines
}
