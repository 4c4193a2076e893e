package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is who the server runs as. Postgres refuses to run as root.
type account struct {
	uid, gid uint32
	other    bool // not us: we are root and step down
}

const nobody = 65534

// accountFor is the present user, or for root the owner of the data, or the
// system's postgres user, or nobody.
func accountFor(data string) account {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	}
	if info, err := os.Stat(data); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return account{uid: owner.Uid, gid: owner.Gid, other: true}
		}
	}
	if u, err := user.Lookup("postgres"); err == nil {
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU == nil && errG == nil {
			return account{uid: uint32(uid), gid: uint32(gid), other: true}
		}
	}
	return account{uid: nobody, gid: nobody, other: true}
}

// command runs as the account, in its own process group so that Ctrl-C reaches
// only us, and sees no environment of ours.
func (a account) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}

// enters tells whether the account can reach a folder. Asking beats reading
// modes: a parent that shuts it out shows up as "permission denied" on
// whatever program is run there.
func (a account) enters(ctx context.Context, dir string) bool {
	return a.command(ctx, dir, "/bin/sh", "-c", ":").Run() == nil
}

// makeFolder makes a private folder of the account's, or takes one that is.
func (a account) makeFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.other {
		if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
			return err
		}
	} else if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != a.uid {
		return fmt.Errorf("%s belongs to another user (%d): it was made by a run as root, so run as root again or remove it", path, owner.Uid)
	}
	return os.Chmod(path, 0o700)
}
