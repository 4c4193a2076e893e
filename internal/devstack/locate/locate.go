// Package locate lets programs find the development stack that runs in a
// folder, and keeps two stacks out of one folder. It links neither the launcher
// nor a NATS server, so production binaries may use it.
package locate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrNotRunning says that no stack runs in the folder.
var ErrNotRunning = errors.New("no development stack runs here")

// ErrRunning says that another stack runs in the folder.
var ErrRunning = errors.New("another development stack runs here")

// Description says how the parts of a running stack are reached. It holds
// passwords.
type Description struct {
	OwnerURL  string `json:"owner_url"` // the role that owns the tables: migrations
	AppURL    string `json:"app_url"`
	WorkerURL string `json:"worker_url"`
	NATSURL   string `json:"nats_url"`
	BaseURL   string `json:"base_url,omitempty"` // where the service answers
	KeyRing   string `json:"key_ring,omitempty"` // key-encryption keys of the stack
}

// Lock takes the folder for one stack, creating it when absent, until release
// or the end of the process, however it ends. ErrRunning says that it is taken.
func Lock(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil { // a server of another account lives below
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, dir)
	}
	return lock.Close, nil
}

// Publish tells where the stack in the folder is reached. The caller holds the
// folder's lock.
func Publish(dir string, d Description) error {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	fresh := file(dir) + ".new"
	if err := os.WriteFile(fresh, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file(dir))
}

// Withdraw takes back what Publish told.
func Withdraw(dir string) error {
	if err := os.Remove(file(dir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Describe tells how the stack that runs in the folder is reached, or
// ErrNotRunning: also when one that was killed has left its description.
func Describe(dir string) (Description, error) {
	raw, err := os.ReadFile(file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Description{}, fmt.Errorf("%w (%s)", ErrNotRunning, dir)
	}
	if err != nil {
		return Description{}, err
	}
	if held, err := isHeld(dir); err != nil || !held {
		return Description{}, errors.Join(err, fmt.Errorf("%w (%s)", ErrNotRunning, dir))
	}
	var d Description
	if err := json.Unmarshal(raw, &d); err != nil {
		return Description{}, fmt.Errorf("%s: %w", file(dir), err)
	}
	return d, nil
}

func isHeld(dir string) (bool, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	free, err := lock.TryRLock()
	return !free, errors.Join(err, lock.Close())
}

func file(dir string) string { return filepath.Join(dir, "stack.json") }
