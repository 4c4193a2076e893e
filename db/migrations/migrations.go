// Package migrations holds the database schema as goose SQL files, one subject
// a file, embedded so that a binary always carries the schema it was built for.
package migrations

import "embed"

// FS holds the *.sql files.
//
//go:embed *.sql
var FS embed.FS
