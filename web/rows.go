package web

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/tenants"
	"weir/web/ui"
)

// lastRows is how many things a short list shows.
const lastRows = 10

// keyRow is an API key as lists show it.
type keyRow struct {
	Name, Kind, Customer, Shown string
	Tone                        ui.Tone
	State                       string
	LastUsed                    time.Time // zero: never
}

// providerRow is a provider key as lists show it.
type providerRow struct {
	Name, Provider, Last4 string
	Practice              bool
	Tone                  ui.Tone
	State, Reason         string
	Models                int
	Rests                 bool // no model of it is called now
}

func keyRowOf(k tenants.APIKey, customer string, now time.Time) keyRow {
	row := keyRow{Name: k.Name, Kind: string(k.Kind), Customer: customer, Shown: "weir_live_" + k.First4 + "…" + k.Last4, Tone: ui.OK, State: "works"}
	if k.Test {
		row.Shown = "weir_test_" + k.First4 + "…" + k.Last4
	}
	if k.LastUsedAt != nil {
		row.LastUsed = k.LastUsedAt.In(now.Location())
	}
	switch status := k.Status(now); {
	case status == "active" && k.ReplacedBy != uuid.Nil:
		row.Tone, row.State = ui.Warn, "replaced, works until "+ui.Instant(k.ExpiresAt.In(now.Location()), now)
	case status == "expired" && k.ReplacedBy != uuid.Nil:
		row.Tone, row.State = ui.Idle, "replaced"
	case status == "revoked":
		row.Tone, row.State = ui.Idle, "revoked "+ui.Instant(k.RevokedAt.In(now.Location()), now)
	case status == "expired":
		row.Tone, row.State = ui.Idle, "expired "+ui.Instant(k.ExpiresAt.In(now.Location()), now)
	}
	return row
}

func providerRowOf(k tenants.ProviderKey, now time.Time) providerRow {
	row := providerRow{Name: k.Name, Provider: k.Provider, Last4: k.Last4, Models: len(k.Models), Reason: k.StatusReason}
	if known, ok := catalogue.Lookup(k.Provider); ok {
		row.Provider, row.Practice = known.Name, known.Practice
	}
	switch k.Status {
	case tenants.Active:
		row.Tone, row.State = ui.OK, "works"
	case tenants.Unverified:
		row.Tone, row.State = ui.Warn, "could not be checked"
	case tenants.Invalid:
		row.Tone, row.State = ui.Bad, "refused by the provider"
	case tenants.Disabled:
		row.Tone, row.State = ui.Idle, "switched off"
	default:
		row.Tone, row.State = ui.Idle, string(k.Status)
	}
	if words := coolWords(k, now); words != "" && k.Usable() {
		row.Tone, row.State = ui.Cool, words
		_, row.Rests = k.Resting(now)
	}
	return row
}
