package usage

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// ErrHeld is what OpenSpool says of a directory that another process holds.
var ErrHeld = errors.New("usage: the spool is in use by another process")

// Orphan is a spool that no process holds.
type Orphan struct {
	Dir      string
	Instance uuid.UUID
}

// Orphans are the spools in the folders beside dir that nobody holds and nobody
// wrote to since before. Whether anything is left in them, the books know.
func Orphans(dir string, before time.Time) (found []Orphan, err error) {
	own, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(own), "*", "instance"))
	if err != nil {
		return nil, err
	}
	for _, path := range beside {
		at := filepath.Dir(path)
		b, err := os.ReadFile(path)
		instance, parsed := uuid.ParseBytes(trimmed(b))
		if at == own || err != nil || parsed != nil || !quietSince(at, before) || held(at) {
			continue
		}
		found = append(found, Orphan{at, instance})
	}
	return found, nil
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return b
}

// quietSince tells whether no file of a folder changed since then.
func quietSince(dir string, before time.Time) bool {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.ModTime().After(before) {
			return false
		}
	}
	return err == nil
}

func held(dir string) bool {
	lock := flock.New(filepath.Join(dir, "lock"))
	free, err := lock.TryLock()
	if free {
		_ = lock.Unlock()
	}
	return err != nil || !free
}

// Want asks whoever has adopted the spool to let go of it.
func Want(dir string) error { return os.WriteFile(wantedPath(dir), nil, 0o600) }

func wantedPath(dir string) string { return filepath.Join(dir, "wanted") }

// Wanted tells whether the process whose spool it is wants it back.
func (s *Spool) Wanted() bool {
	_, err := os.Stat(wantedPath(s.dir))
	return err == nil
}

// Over tells whether nothing is left to do: no call is open, and the books have
// every event.
func (s *Spool) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0 && s.progressLocked().drained()
}
