package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/keyring"
)

// secrets are the keys of a development stack, made once and kept beside its
// data. In production they come from the environment.
type secrets struct {
	KeyRing   string `json:"key_ring"`
	EventKeys string `json:"event_keys"`
	AppKeys   string `json:"app_keys"`
}

func loadSecrets(dir string) (secrets, error) {
	path := filepath.Join(dir, "secrets.json")
	var s secrets
	raw, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			return s, fmt.Errorf("%s cannot be read: %w", path, err)
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s = secrets{KeyRing: keyring.NewKey("dev"), EventKeys: keyring.NewKey("dev"), AppKeys: keyring.NewKey("dev")}
	if raw, err = json.Marshal(s); err != nil {
		return s, err
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return s, err
	}
	return s, os.Rename(path+".new", path)
}
