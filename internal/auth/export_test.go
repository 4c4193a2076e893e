package auth

import (
	"context"
	"time"
)

// Sleep makes the database's clock run on by d since the directory last looked,
// as it does for a process that is stopped.
func (d *Directory) Sleep(t time.Duration) { d.seen.at = d.seen.at.Add(-t) }

// Restarted makes the server another one than it was when the directory last
// looked.
func (d *Directory) Restarted() { d.seen.server = d.seen.server.Add(-time.Hour) }

// Reads is how many parts the directory has read.
func (d *Directory) Reads() int64 { return d.horizon.Loads() }

// Flush writes what Run would write now.
func (l *LastUsed) Flush(ctx context.Context) { l.flush(ctx) }
