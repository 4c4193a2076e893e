package locate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func lock(t *testing.T, dir string) func() error {
	t.Helper()
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestTwoStacksNeverShareAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stack")
	release := lock(t, dir)
	if _, err := Lock(dir); !errors.Is(err, ErrRunning) {
		t.Fatalf("the second lock: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := lock(t, dir)(); err != nil {
		t.Fatal(err)
	}
}

func TestARunningStackIsFoundAndADeadOneIsNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Describe(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("before: %v", err)
	}
	release := lock(t, dir)
	want := Description{OwnerURL: "o", AppURL: "a", WorkerURL: "w", NATSURL: "n", BaseURL: "b"}
	if err := Publish(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Describe(dir); err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := release(); err != nil { // as a kill does: the description stays
		t.Fatal(err)
	}
	if _, err := Describe(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("after: %v", err)
	}
}

func TestAskingDoesNotTakeTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Publish(dir, Description{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Describe(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
	if err := lock(t, dir)(); err != nil {
		t.Fatal(err)
	}
}

func TestTheDescriptionIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Publish(dir, Description{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := errors.Join(Withdraw(dir), Withdraw(dir)); err != nil {
		t.Fatal(err)
	}
}
