package gateway

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/catalogue"
	"weir/internal/limits"
)

// providerError is what matters of an error body: OpenAI's form, which others
// send with a number for code (OpenRouter), and Google's with its details.
type providerError struct {
	Message string         `json:"message"`
	Type    string         `json:"type"`
	Code    jsontext.Value `json:"code"`
	Status  string         `json:"status"` // Google's word
	Meta    struct {
		Reasons jsontext.Value `json:"reasons"`
		Flagged jsontext.Value `json:"flagged_input"`
	} `json:"metadata"` // OpenRouter's
	Details []struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			ID    string         `json:"quotaId"`
			Value jsontext.Value `json:"quotaValue"`
		} `json:"violations"`
	} `json:"details"`
}

// readError reads an error body, which Google's streams wrap in an array. What
// is not there, or has another form, stays empty.
func readError(body []byte) (e providerError) {
	v := jsontext.Value(body)
	if v.Kind() == '[' {
		var list []jsontext.Value
		if json.Unmarshal(v, &list, lenient) != nil || len(list) == 0 {
			return e
		}
		v = list[0]
	}
	var outer struct {
		Error jsontext.Value `json:"error"`
	}
	if json.Unmarshal(v, &outer, lenient) == nil && outer.Error.Kind() == '{' {
		_ = json.Unmarshal(outer.Error, &e, lenient) // see above
	}
	return e
}

// code is the error's code in words, or "".
func (e providerError) code() (s string) {
	_ = json.Unmarshal(e.Code, &s) // a number is no word
	return s
}

// creditCodes say that waiting does not help, only money.
var creditCodes = regexp.MustCompile(`^(insufficient_quota|credit_balance_exhausted|enforced_spend_limit_reached|[a-z]+_(spend|usage)_limit_exceeded)$`)

// spendWords begin Anthropic's 400 at a limit that a workspace set for itself.
const spendWords = "You have reached your specified API usage limits"

func (s *stated) readBody(e providerError, q catalogue.Quirks) {
	if s.status == http.StatusOK {
		s.status = e.meant()
	}
	switch s.status {
	case http.StatusTooManyRequests, http.StatusPaymentRequired, http.StatusForbidden:
		if code := e.code(); creditCodes.MatchString(code) || creditCodes.MatchString(e.Type) {
			s.message, s.detail = limits.MessageCredit, named(code)
			return
		}
	case http.StatusBadRequest:
		if q.SpendIn400 && strings.HasPrefix(e.Message, spendWords) {
			s.message = limits.MessageCredit
		}
		return
	}
	if s.status == http.StatusTooManyRequests {
		s.readGoogle(e)
		s.readProse(e)
	}
}

// number is the status in the code of an error that came with a 200; 0 is none.
func (e providerError) number() int {
	var n int
	if json.Unmarshal(e.Code, &n) != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// meant is the status that an error inside a 200 stands for: the number that it
// states, else what its code or type means in OpenAI's or Anthropic's API. 0: it
// does not say.
func (e providerError) meant() int {
	if n := e.number(); n != 0 {
		return n
	}
	for _, word := range []string{e.code(), e.Type, e.Status} {
		if creditCodes.MatchString(word) {
			return http.StatusTooManyRequests
		}
		if n := statuses[word]; n != 0 {
			return n
		}
	}
	return 0
}

// statuses are those that stand behind the words of errors (wire-formats, 1 to 3).
var statuses = map[string]int{
	"rate_limit_exceeded": http.StatusTooManyRequests, "rate_limit_error": http.StatusTooManyRequests, "slow_down": http.StatusTooManyRequests,
	"requests": http.StatusTooManyRequests, "tokens": http.StatusTooManyRequests, "RESOURCE_EXHAUSTED": http.StatusTooManyRequests,
	"authentication_error": http.StatusUnauthorized, "invalid_api_key": http.StatusUnauthorized, "billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden,
	"overloaded_error": http.StatusServiceUnavailable, "server_is_overloaded": http.StatusServiceUnavailable, "service_unavailable_error": http.StatusServiceUnavailable,
	"timeout_error": http.StatusGatewayTimeout,
}

// flagged tells whether the prompt was refused for what it says: nothing of the
// key's.
func (e providerError) flagged() bool {
	return present(e.Meta.Reasons) || present(e.Meta.Flagged) || e.code() == "content_policy_violation" || e.code() == "content_filter"
}

// asked reads the limit and the request of a refusal in OpenAI's words.
var asked = regexp.MustCompile(`\bLimit:? ([0-9]{1,15}),(?: Used:? [0-9]+,)? Requested:? ([0-9]{1,15})\b`)

// hopeless tells whether a 429 says that the call alone is more than the limit:
// no wait helps, and nothing is wrong with the key.
func (e providerError) hopeless() bool {
	m := asked.FindStringSubmatch(e.Message)
	if m == nil {
		return false
	}
	limit, _ := strconv.ParseInt(m[1], 10, 64)
	request, _ := strconv.ParseInt(m[2], 10, 64)
	return request > limit
}

// readGoogle reads QuotaFailure and RetryInfo (google.rpc.error_details). A quota
// per day is spent until the provider's day ends, whatever the delay says.
func (s *stated) readGoogle(e providerError) {
	for _, d := range e.Details {
		if strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			if wait, err := readDuration(d.RetryDelay); err == nil && wait > 0 {
				s.wait = max(s.wait, min(wait, limits.LongestWait))
			}
		}
		for _, v := range d.Violations {
			l, ok := googleQuota(v.ID)
			if !ok {
				continue
			}
			s.detail = named(v.ID)
			if l.Window == limits.WindowDay {
				s.message, s.daily = limits.MessageDaySpent, limits.DailySpent
			}
			if l.Amount, ok = figure(strings.Trim(string(v.Value), `"`)); ok && l.Amount > 0 {
				s.limits = append(s.limits, l)
			}
		}
	}
}

// googleQuota reads what a quota's id counts, such as
// GenerateContentInputTokensPerModelPerMinute-FreeTier.
func googleQuota(id string) (l limits.Statement, ok bool) {
	l = limits.Statement{Left: 0, From: limits.FromBody, Detail: named(id)}
	switch {
	case strings.Contains(id, "InputToken"):
		l.Dimension = limits.DimensionInputTokens
	case strings.Contains(id, "Token"):
		l.Dimension = limits.DimensionTokens
	case strings.Contains(id, "Request"):
		l.Dimension = limits.DimensionRequests
	}
	switch {
	case strings.Contains(id, "PerMinute"):
		l.Window = limits.WindowMinute
	case strings.Contains(id, "PerDay"):
		l.Window = limits.WindowDay
	}
	return l, l.Dimension != "" && l.Window != ""
}

// What OpenAI's 429 says, and those who copied it: "… on tokens per min (TPM):
// Limit 200000, Used 192548, Requested 8218. Please try again in 229ms."
var (
	prose     = regexp.MustCompile(`\bon (tokens|requests) per (min|day) \(([TR]P[MD])\): Limit:? ([0-9]{1,15})\b`)
	proseWait = regexp.MustCompile(`(?i)\btry again in ((?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+(?:\.[0-9]+)?(?:ms|s))?)(?:[.\s]|$)`)
)

// readProse reads those words where the body has OpenAI's form.
func (s *stated) readProse(e providerError) {
	if e.Type == "" && e.code() == "" {
		return
	}
	if m := proseWait.FindStringSubmatch(e.Message); m != nil {
		if wait, err := readDuration(m[1]); err == nil && wait > 0 {
			s.wait = max(s.wait, min(wait, limits.LongestWait))
		}
	}
	m := prose.FindStringSubmatch(e.Message)
	if m == nil {
		return
	}
	l := limits.Statement{Dimension: limits.Dimension(m[1]), Window: limits.WindowMinute, Left: 0, From: limits.FromBody, Detail: m[3]}
	s.detail = m[3]
	if m[2] == "day" {
		l.Window, s.daily = limits.WindowDay, limits.DailySpent
		if s.wait == 0 {
			s.message = limits.MessageDaySpent
		}
	}
	if l.Amount, _ = strconv.ParseInt(m[4], 10, 64); l.Amount > 0 {
		s.limits = append(s.limits, l)
	}
}

// named is an identifier as a provider spells it, and nothing else: what it
// names is shown and stored.
func named(s string) string {
	if len(s) > 120 || strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:", r)
	}) >= 0 {
		return ""
	}
	return s
}
