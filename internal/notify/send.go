package notify

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/keyring"
	"weir/internal/outbound"
)

const (
	answerWithin = 15 * time.Second
	answerRead   = 64 << 10 // of an answer, so that its connection can be used again; none of it is kept
)

// Why a try has no status.
const (
	failedTimeout     = "timed_out"
	failedUnreachable = "unreachable"
	failedBlocked     = "address_not_allowed"
	failedCertificate = "bad_certificate"
	failedSecret      = "secret_unavailable"
)

// outcome is what became of one try.
type outcome struct {
	at     time.Time
	status int    // 0: no answer
	err    string // "": it was answered
	took   time.Duration
}

// taken tells whether the far end has the message: any 2xx. A redirect is none,
// for the message would go where nobody registered it to go.
func (o outcome) taken() bool { return o.status >= 200 && o.status < 300 }

// parcel is a claimed delivery with what it takes to send it.
type parcel struct {
	tenant, endpoint, message, lease uuid.UUID
	id, url, body                    string
	secrets                          []keyring.Secret
}

// send posts a message once (Standard Webhooks). Each try has the same id and
// body, and a time and signature of its own.
func (d *Deliverer) send(ctx context.Context, p parcel) outcome {
	out := outcome{at: d.now().UTC().Truncate(time.Microsecond)}
	signed, err := signature(p.secrets, p.id, out.at, p.body)
	if err != nil || len(p.secrets) == 0 {
		out.err = failedSecret
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(p.body))
	if err != nil {
		out.err = failedUnreachable
		return out
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Weir-Webhooks/1")
	req.Header.Set("webhook-id", p.id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(out.at.Unix(), 10))
	req.Header.Set("webhook-signature", signed)
	began := time.Now()
	resp, err := d.guard.Client(p.tenant).Do(req)
	out.took = time.Since(began)
	if err != nil {
		out.err = reason(err)
		return out
	}
	_, _ = io.CopyN(io.Discard, resp.Body, answerRead)
	_ = resp.Body.Close()
	out.status = resp.StatusCode
	return out
}

// reason says why there was no answer, and nothing of the address.
func reason(err error) string {
	switch f := outbound.Fault(err); f.Code {
	case "upstream_blocked":
		return failedBlocked
	case "upstream_tls_failed":
		return failedCertificate
	case "upstream_timeout":
		return failedTimeout
	default:
		return failedUnreachable
	}
}
