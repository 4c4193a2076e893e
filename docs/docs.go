// Package docs holds what is written here for those who use Weir, as far as its
// own pages show it.
package docs

import _ "embed" // the texts

// Limits is limits.md: how limits count, in GitHub's Markdown.
//
//go:embed limits.md
var Limits []byte

// Gateway is gateway.md: what clients and providers say, and how one is said in
// the other's words.
//
//go:embed gateway.md
var Gateway []byte

// Decisions is decision-api.md: how to reserve, settle and wait.
//
//go:embed decision-api.md
var Decisions []byte

// Catalogue is catalogue.md: providers, and what they say of models, limits and
// prices.
//
//go:embed catalogue.md
var Catalogue []byte

// Usage is usage.md: what is counted, and until when it is true.
//
//go:embed usage.md
var Usage []byte

// Models is models.md: aliases, pools, and where a call goes.
//
//go:embed models.md
var Models []byte

// Webhooks is webhooks.md: what is told, how it is signed, when it is sent again.
//
//go:embed webhooks.md
var Webhooks []byte

// Plans is plans.md: versions, periods, changes of plan, overrides.
//
//go:embed plans.md
var Plans []byte
