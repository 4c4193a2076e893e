package localpg

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrapperOnThePathIsPassedOver(t *testing.T) {
	wrappers := openDir(t)
	script := "#!/bin/sh\nexit 1\n"
	if err := os.WriteFile(filepath.Join(wrappers, "initdb"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", wrappers+":"+os.Getenv("PATH"))
	in, err := find(t.Context(), Options{}, accountFor(""), 0)
	if err != nil || in.bin == wrappers || in.major < oldestMajor {
		t.Errorf("found %+v, %v", in, err)
	}
}

func TestABrokenServerIsPassedOver(t *testing.T) {
	broken := openDir(t)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", broken+":"+os.Getenv("PATH"))
	in, err := find(t.Context(), Options{}, accountFor(""), 0)
	if err != nil || in.bin == broken {
		t.Errorf("found %+v, %v", in, err)
	}
}

func TestANamedFolderIsTheOnlyOneTried(t *testing.T) {
	t.Parallel()
	if in, err := find(t.Context(), Options{Bin: openDir(t)}, accountFor(""), 0); err == nil {
		t.Errorf("found %+v", in)
	}
}

func TestDataOfAnotherVersionIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	data := filepath.Join(dir, "server", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir, Fast: true})
	if err == nil || !strings.Contains(err.Error(), "the data is from Postgres 9") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutPostgresOneTextNamesTheWays(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"apt-get install postgresql", "brew install", "npm", "PG_BIN=", "DATABASE_URL="} {
		if !strings.Contains(errNotFound.Error(), way) {
			t.Errorf("%q is not named", way)
		}
	}
}

type entry struct{ name, body string }

func archive(t *testing.T, entries ...entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.tgz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz := gzip.NewWriter(f)
	w := tar.NewWriter(gz)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.body)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePackageUnpacksWithItsLinks(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "native")
	err := unpack(archive(t,
		entry{"package/package.json", "{}"},
		entry{"package/native/bin/postgres", "server"},
		entry{"package/native/lib/libx.so.1.2", "library"},
		entry{"package/native/pg-symlinks.json", `[{"source":"native/lib/libx.so.1.2","target":"native/lib/libx.so.1"}]`},
	), to)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(to, "lib", "libx.so.1")); err != nil || string(raw) != "library" {
		t.Errorf("the link reads %q, %v", raw, err)
	}
	if info, err := os.Stat(filepath.Join(to, "bin", "postgres")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the program cannot be run: %v", err)
	}
}

func TestAPackageCannotWriteOutsideItsFolder(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]entry{
		"file": {{"package/native/../../../escaped", "x"}},
		"link": {{"package/native/pg-symlinks.json", `[{"source":"native/a","target":"native/../../escaped"}]`}},
	} {
		dir := t.TempDir()
		if err := unpack(archive(t, entries...), filepath.Join(dir, "deep", "native")); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Lstat(filepath.Join(dir, "escaped")); err == nil {
			t.Errorf("%s: it escaped", name)
		}
	}
}
