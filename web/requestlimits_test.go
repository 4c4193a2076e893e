package web

import (
	"testing"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/usage"
)

func TestALimitOfAnEndUserIsToldWithWhomItIsAbout(t *testing.T) {
	t.Parallel()
	l := limits.Limit{Scope: limits.Scope{Kind: limits.ScopeEndUser, ID: uuid.New(), Name: "Team"}, Dimension: limits.DimensionRequests, Window: limits.WindowDay, Models: []string{"gpt-4o*"}}
	for user, want := range map[string]string{"ann": "the end user ann", "": "calls that name no end user"} {
		r := requestPage{Call: callRow{Event: usage.Event{EndUser: user}}}
		if got := r.limitOf(l); got != want {
			t.Errorf("%q: whose it is says %q", user, got)
		}
		for _, of := range []string{"gpt-4o*", ""} {
			l.Models = nil
			if of != "" {
				l.Models, of = []string{of}, ", models "+of
			}
			name, whose := r.ledgerWords(l.LedgerOf("", user))
			if name != "Requests a day" || whose != want+of {
				t.Errorf("%q: a ledger is told as %q of %q", user, name, whose)
			}
		}
	}
}
