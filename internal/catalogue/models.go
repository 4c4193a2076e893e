package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/fault"
)

// MaxModels is how many models of one provider key are kept.
const MaxModels = 2000

const (
	verifyTimeout = 15 * time.Second
	modelsLimit   = 8 << 20 // of one page
	mostPages     = 20
)

// Models asks the provider which models the key may use: the live check of a
// key. It returns them sorted. A key that the provider does not accept is
// Unauthenticated with code provider_key_invalid; every other failure is
// Upstream. The provider's own words are never repeated: some echo the key.
func (c *Client) Models(ctx context.Context, e Endpoint) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if e.Provider.check != "" {
		if _, err := c.ask(ctx, e, e.Provider.check); err != nil {
			return nil, err
		}
	}
	var models []string
	path := "/models"
	if e.Provider.Form == Anthropic {
		path = "/models?limit=1000"
	}
	for range mostPages {
		body, err := c.ask(ctx, e, path)
		if err != nil {
			return nil, err
		}
		page, err := modelPage(body)
		if err != nil {
			return nil, fault.New(fault.Upstream, "provider_check_failed", "The provider's list of models could not be read.").Because(fmt.Errorf("decode models: %w", err))
		}
		for _, m := range page.names() {
			if ValidModel(m) && len(models) < MaxModels {
				models = append(models, m)
			}
		}
		if e.Provider.Form != Anthropic || !page.HasMore || page.LastID == "" || len(models) == MaxModels {
			break
		}
		path = "/models?limit=1000&after_id=" + url.QueryEscape(page.LastID)
	}
	slices.Sort(models)
	return slices.Compact(models), nil
}

// ask reads one answer of a check.
func (c *Client) ask(ctx context.Context, e Endpoint, path string) ([]byte, error) {
	resp, err := c.Do(ctx, e, http.MethodGet, path, http.Header{"Accept": {"application/json"}, "User-Agent": {"weir"}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, modelsLimit))
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || badKey(resp.StatusCode, body):
		return nil, fault.Newf(fault.Unauthenticated, "provider_key_invalid", "The provider refused this key (status %d).", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fault.Newf(fault.Upstream, "provider_check_failed", "The provider answered the check with status %d.", resp.StatusCode)
	case err != nil:
		return nil, fault.New(fault.Upstream, "provider_check_failed", "The provider's list of models could not be read.").Because(err)
	}
	return body, nil
}

// badKey tells whether a 400 says that the key is none: Google does (reason
// API_KEY_INVALID), and xAI.
func badKey(status int, body []byte) bool {
	return status == http.StatusBadRequest && (strings.Contains(string(body), "API_KEY_INVALID") || strings.Contains(string(body), "Incorrect API key"))
}

// modelList is a page of models: OpenAI's, Anthropic's with its cursor. Together
// sends the bare list.
type modelList struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	HasMore bool   `json:"has_more"`
	LastID  string `json:"last_id"`
}

func modelPage(body []byte) (list modelList, err error) {
	if strings.HasPrefix(strings.TrimSpace(string(body[:min(len(body), 64)])), "[") {
		return list, json.Unmarshal(body, &list.Data)
	}
	return list, json.Unmarshal(body, &list)
}

// names are the models as calls name them: Google lists "models/…", and takes
// the name without.
func (l modelList) names() (out []string) {
	for _, m := range l.Data {
		out = append(out, strings.TrimPrefix(m.ID, "models/"))
	}
	return out
}

// ValidModel tells whether s can be a model's name: 1 to 200 printable ASCII
// characters without spaces.
func ValidModel(s string) bool {
	return len(s) >= 1 && len(s) <= 200 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
