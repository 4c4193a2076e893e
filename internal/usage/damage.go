package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Damage is a place of a spool whose bytes are not what was written, or where
// records are missing. Kept is the file that the bytes were copied to.
type Damage struct {
	File   string
	Offset int64
	Reason string
	Kept   string
}

func (d Damage) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", d.File, d.Offset, d.Reason)
}

// mend finds where reading can go on after a bad record. Behind the last whole
// record of the last file is what a kill left of an unfinished write: it is cut
// off. Everything else is damage. The bytes are kept either way.
func (s *Spool) mend(f *os.File, seg *segment, off int64, last bool, why error, rec *Recovery) (next int64, err error) {
	rest := make([]byte, seg.size-off)
	if _, err := f.ReadAt(rest, off); err != nil {
		return 0, err
	}
	next = seg.size
	if n := resync(rest); n > 0 {
		next, rest = off+int64(n), rest[:n]
	}
	kept := filepath.Join(s.dir, fmt.Sprintf("damaged-%016d-%d", seg.seq, off))
	if err := writeFile(kept, rest); err != nil {
		return 0, err
	}
	atEnd := last && next == seg.size
	if !atEnd || errors.Is(why, errDamaged) && !zeros(rest) {
		rec.Damage = append(rec.Damage, Damage{seg.path, off, why.Error(), kept})
	}
	if atEnd {
		seg.size = off
		return off, f.Truncate(off)
	}
	seg.holes = append(seg.holes, hole{off, next})
	return next, nil
}

func zeros(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}
