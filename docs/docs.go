// Package docs holds what is written here for those who use Weir, as far as its
// own pages show it.
package docs

import _ "embed" // the texts

// Limits is limits.md: how limits count, in GitHub's Markdown.
//
//go:embed limits.md
var Limits []byte

// Decisions is decision-api.md: how to reserve, settle and wait.
//
//go:embed decision-api.md
var Decisions []byte
