package notify

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"weir/internal/keyring"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// newSecret is a random signing secret in the form of Standard Webhooks.
func newSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// signature is the value of webhook-signature: for each secret "v1," and the
// HMAC-SHA256 of id, time and body, joined by spaces
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
func signature(secrets []keyring.Secret, message string, at time.Time, body string) (string, error) {
	var all []string
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), secretPrefix))
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(message + "." + strconv.FormatInt(at.Unix(), 10) + "." + body))
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " "), nil
}
