package keyring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/fault"
)

const canary = "sk-canary-0123456789"

func TestASecretPrintsAsRedactedEverywhere(t *testing.T) {
	s := NewSecret(canary)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "wrapped", struct{ S Secret }{s}, "pointer", &s)
	j, _ := json.Marshal(map[string]any{"a": s, "b": &s, "c": []Secret{s}})
	all := fmt.Sprintf("%s %v %+v %#v %q %d %x %v %+v", s, s, s, s, s, s, s, &s, struct{ S Secret }{s}) + log.String() + string(j) + fmt.Sprint(fmt.Errorf("%v", s))
	if strings.Contains(all, "canary") || strings.Contains(all, fmt.Sprintf("%x", canary)) {
		t.Fatalf("leaked: %s", all)
	}
	if s.Last4() != "6789" || NewSecret("short").Last4() != "" {
		t.Fatal("last4")
	}
}

func TestASealedSecretOpensOnlyWhereItWasSealed(t *testing.T) {
	old := NewKey("k1")
	ring, err := ParseRing(old)
	if err != nil {
		t.Fatal(err)
	}
	tenant, object := uuid.New(), uuid.New()
	w, err := ring.NewDataKey(tenant, uuid.New())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ring.Unwrap(tenant, w)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Seal(object, "secret", NewSecret(canary))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("canary")) {
		t.Fatal("not encrypted")
	}
	if s, err := key.Open(object, "secret", sealed); err != nil || s.Reveal() != canary {
		t.Fatalf("got %v, %v", s, err)
	}
	for name, open := range map[string]func() (Secret, error){
		"another object": func() (Secret, error) { return key.Open(uuid.New(), "secret", sealed) },
		"another field":  func() (Secret, error) { return key.Open(object, "other", sealed) },
		"cut":            func() (Secret, error) { return key.Open(object, "secret", sealed[:20]) },
		"empty":          func() (Secret, error) { return key.Open(object, "secret", nil) },
		"flipped":        func() (Secret, error) { b := bytes.Clone(sealed); b[30] ^= 1; return key.Open(object, "secret", b) },
	} {
		if s, err := open(); fault.Of(err) == nil || fault.Of(err).Code != "credential_unavailable" || !s.IsZero() {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
	if _, err := ring.Unwrap(uuid.New(), w); err == nil {
		t.Error("another tenant unwrapped the data key")
	}
	rotated, err := ParseRing(NewKey("k2") + "," + old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rotated.Unwrap(tenant, w); err != nil {
		t.Errorf("after adding a key: %v", err)
	}
	without, _ := ParseRing(NewKey("k2"))
	if _, err := without.Unwrap(tenant, w); fault.Of(err).Kind != fault.Unavailable {
		t.Errorf("without its key: %v", err)
	}
}

func TestABadRingIsRefusedWithoutRepeatingIt(t *testing.T) {
	for _, bad := range []string{"", "k1", "k1:AAAA", ":" + canary, NewKey("a") + "," + NewKey("a"), canary} {
		if _, err := ParseRing(bad); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
