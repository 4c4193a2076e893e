package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestWhatClientsAndProvidersSayBesideTheCallStaysWhereItIs: on every route a
// provider sees nothing of the client's headers but what its form needs, and the
// client nothing of the provider's.
func TestWhatClientsAndProvidersSayBesideTheCallStaysWhereItIs(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for _, l := range lanes() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := l.world(t, s, up)
			up.Next(upstreamtest.Telling())
			req := l.request(t.Context(), t, s, w.Key)
			for name, value := range map[string]string{
				"OpenAI-Organization": "org-mine", "OpenAI-Project": "proj", "X-Stainless-Lang": "go", "Cookie": "a=b", "X-Forwarded-For": "192.0.2.1",
				"X-Weir-Max-Wait-Ms": "0", "X-Weir-Tags": "team=a", "Connection": "authorization, x-request-id", "Te": "trailers", "Proxy-Authorization": "Basic x", "Accept-Encoding": "gzip",
				"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "files-api-2025-04-14", "Anthropic-Dangerous-Direct-Browser-Access": "true", "Origin": "https://app.example",
			} {
				req.Header.Set(name, value)
			}
			a, err := s.Send(req)
			if err != nil || a.Status != 200 {
				t.Fatalf("%s, %v", a, err)
			}
			l.checkSeen(t, up.Last().Header, w.ProviderSecret)
			checkTold(t, a.Header)
		})
	}
}

func (l lane) checkSeen(t *testing.T, h http.Header, secret string) {
	t.Helper()
	allowed := []string{"Accept", "Authorization", "Content-Length", "Content-Type", "User-Agent"}
	credential := h.Get("Authorization") == "Bearer "+secret
	if l.provider() == "custom-anthropic" {
		allowed = []string{"Accept", "X-Api-Key", "Content-Length", "Content-Type", "User-Agent", "Anthropic-Version"}
		credential = h.Get("X-Api-Key") == secret && h.Get("Anthropic-Version") != ""
		if l.anthropic() {
			allowed = append(allowed, "Anthropic-Beta")
			credential = credential && h.Get("Anthropic-Beta") == "files-api-2025-04-14"
		}
	}
	if !credential {
		t.Errorf("the provider's credential is not what was stored: %v", h)
	}
	for name := range h {
		if !slices.Contains(allowed, name) {
			t.Errorf("the provider sees %s: %q", name, h[name])
		}
	}
}

func checkTold(t *testing.T, h http.Header) {
	t.Helper()
	for name, values := range h {
		text := strings.Join(values, " ")
		if strings.Contains(text, "upstream") || slices.Contains([]string{"Set-Cookie", "Alt-Svc", "Strict-Transport-Security", "Content-Security-Policy", "Www-Authenticate", "Openai-Organization"}, name) {
			t.Errorf("the client is told %s: %s", name, text)
		}
	}
	if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("X-Ratelimit-Limit-Requests") != "1000" {
		t.Errorf("the client is told %v", h)
	}
}

// TestAnswersThatAreNoneAreTheProvidersFailure: too many headers, and a body
// that is compressed though nobody asked for that, which is never unpacked.
func TestAnswersThatAreNoneAreTheProvidersFailure(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for _, l := range []lane{{mimic.Chat, mimic.Chat, false}, {mimic.Messages, mimic.Messages, false}, {mimic.Chat, mimic.Messages, false}, {mimic.Responses, mimic.Responses, false}, {mimic.Embeddings, mimic.Embeddings, false}} {
		for name, script := range map[string]upstreamtest.Script{"gzip": {Gzip: true}, "40 KiB of headers": upstreamtest.HugeHeader(40 << 10), "HTML": upstreamtest.NotJSON()} {
			t.Run(l.String()+", "+name, func(t *testing.T) {
				t.Parallel()
				up := upstreamtest.New(t)
				w := l.world(t, s, up)
				up.Next(script)
				a, err := s.Send(l.request(t.Context(), t, s, w.Key))
				if err != nil || a.Status != 502 || a.Text("error.code") != "upstream_invalid_response" {
					t.Errorf("%.300s, %v", a, err)
				}
			})
		}
	}
}

// TestEveryRouteRefusesWhatCouldBeReadInTwoWays, names the member, and asks no
// provider.
func TestEveryRouteRefusesWhatCouldBeReadInTwoWays(t *testing.T) {
	t.Parallel()
	s := rig(t)
	numbers := map[string][]string{
		mimic.Chat: {"n", "max_tokens", "max_completion_tokens"}, mimic.Completions: {"n", "best_of", "max_tokens"},
		mimic.Responses: {"max_output_tokens"}, mimic.Messages: {"max_tokens"}, mimic.Images: {"n"},
	}
	for _, l := range lanes() {
		if l.stream || l.up != l.route || l.route == mimic.Transcriptions {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := l.world(t, s, up)
			whole, _ := l.body()
			with := func(member string) string { return "{" + member + "," + whole[1:] }
			check := func(body, contentType string, status int, code string) {
				t.Helper()
				req := l.request(t.Context(), t, s, w.Key)
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				req.Header.Set("Content-Type", contentType)
				a, err := s.Send(req)
				if err != nil || a.Status != status || a.Text("error.code") != code || a.Header.Get("X-Should-Retry") != "false" {
					t.Errorf("%.120s: %.300s, %v; want %d %s", body, a, err, status, code)
				}
			}
			for _, name := range []string{"api_key", "base_url", "API_BASE"} {
				check(with(`"`+name+`":"x"`), "application/json", 400, "unsupported_parameter")
			}
			check(with(`"MODEL":"test-large"`), "application/json", 400, "ambiguous_json")
			check(with(`"model":"test-large"`), "application/json", 400, "ambiguous_json")
			check(whole+`{}`, "application/json", 400, "bad_json")
			check(whole, "text/plain", 415, "unsupported_media_type")
			check(whole, "application/x-www-form-urlencoded", 415, "unsupported_media_type")
			check(whole, "multipart/form-data; boundary=x", 415, "unsupported_media_type")
			for _, dodge := range []string{"Test-Small", " test-small", "ｔest-small", "test-small\u200b", "custom/test-small", "test-small-2024-07-18", "ft:test-small:x"} {
				check(strings.Replace(whole, `"test-small"`, fmt.Sprintf("%q", dodge), 1), "application/json", 404, "model_not_found")
			}
			for _, name := range numbers[l.route] {
				for _, value := range []string{"-1", "0", "1e2", "1e400", "9223372036854775808", `"5"`, "1.5", "1000000001"} {
					check(with(fmt.Sprintf("%q:%s", name+"", value)), "application/json", 400, duplicateOr(whole, name, "out_of_range"))
				}
			}
			if n := len(up.Calls()); n != 0 {
				t.Errorf("%d calls reached the provider", n)
			}
		})
	}
}

// duplicateOr is the code of a second member of that name where the body has
// one already.
func duplicateOr(body, name, code string) string {
	if strings.Contains(body, `"`+name+`"`) {
		return "ambiguous_json"
	}
	return code
}

// TestAFormOfPartsIsReadOnce: what is wrong with a transcription's form is told,
// and what goes on is what was read, with the model that serves it.
func TestAFormOfPartsIsReadOnce(t *testing.T) {
	t.Parallel()
	s := rig(t)
	l := lane{mimic.Transcriptions, mimic.Transcriptions, false}
	up := upstreamtest.New(t)
	w := l.world(t, s, up)
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	file := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\nX-Evil: 1\r\n\r\nRIFF\r\n"
	for body, code := range map[string]string{
		file + "--b--\r\n": "missing_required_parameter", part("model", "test-small") + "--b--\r\n": "missing_required_parameter",
		part("model", "test-small") + part("model", "test-large") + file + "--b--\r\n":                 "ambiguous_form",
		part("model", "test-small") + part("MODEL", "test-large") + file + "--b--\r\n":                 "ambiguous_form",
		part("model", "test-small") + part("base_url", "http://x") + file + "--b--\r\n":                "unsupported_parameter",
		part("model", "other") + file + "--b--\r\n":                                                    "model_not_found",
		part("model", "test-small") + file:                                                             "bad_form",
		part("model", "test-small") + part("prompt", strings.Repeat("x", 65<<10)) + file + "--b--\r\n": "too_large",
	} {
		req := l.request(t.Context(), t, s, w.Key)
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		if a, err := s.Send(req); err != nil || a.Status < 400 || a.Status > 404 || a.Text("error.code") != code {
			t.Errorf("%.60s…: %s, %v; want %s", body, a, err, code)
		}
	}
	if n := len(up.Calls()); n != 0 {
		t.Errorf("%d calls reached the provider", n)
	}
	s.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(`{"name": "ears", "candidates": [{"model": "test-small", "provider_key": %q}]}`, w.ProviderKey))
	stack.Eventually(t, 10*time.Second, func() string {
		body := part("model", "ears") + part("timestamp_granularities[]", "word") + part("timestamp_granularities[]", "segment") + file + "--b--\r\n"
		req := l.request(t.Context(), t, s, w.Key)
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		if a, err := s.Send(req); err != nil || a.Status != 200 {
			return fmt.Sprint(a, err)
		}
		return ""
	})
	if got := string(up.Last().Body); !strings.Contains(got, "\r\n\r\ntest-small\r\n") || strings.Contains(got, "ears") || strings.Contains(got, "Evil") || strings.Count(got, "timestamp_granularities[]") != 2 || !strings.Contains(got, "audio/wav") {
		t.Errorf("the provider got %s", got)
	}
}

// TestNoRequestReachesIntoTheNext: what two servers could read as one request or
// as two is refused, or is the last of its connection.
func TestNoRequestReachesIntoTheNext(t *testing.T) {
	t.Parallel()
	s := rig(t)
	up := upstreamtest.New(t)
	w := world(t, s, up)
	at, err := url.Parse(s.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	inner := "GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Key + "\r\n\r\n"
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Key + "\r\nContent-Type: application/json\r\n"
	small := body(false)
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(small), small)
	for name, raw := range map[string]string{
		"two lengths":              head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s", len(small), len(small)+5, small),
		"a length beside chunks":   head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%s", len(small)+5, chunked),
		"chunks beside a length":   head + fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n%s", chunked),
		"an encoding of two":       head + fmt.Sprintf("Transfer-Encoding: chunked, identity\r\n\r\n%s", chunked),
		"two encodings":            head + fmt.Sprintf("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n%s", chunked),
		"an encoding nobody knows": head + fmt.Sprintf("Transfer-Encoding: xchunked\r\n\r\n%s", chunked),
		"a length with a sign":     head + fmt.Sprintf("Content-Length: +%d\r\n\r\n%s", len(small), small),
		"a length in words":        head + "Content-Length: many\r\n\r\n" + small,
		"a space before the colon": head + fmt.Sprintf("Content-Length : %d\r\n\r\n%s", len(small), small),
		"an upgrade to h2c":        head + fmt.Sprintf("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nTransfer-Encoding: chunked\r\n\r\n%s", chunked),
		"a chunk of a wrong size":  head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n%s\r\n0\r\n\r\n", small),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, raw+inner); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(c)
			a, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			_, _ = io.Copy(io.Discard, a.Body) // what came is enough
			if a.StatusCode == http.StatusSwitchingProtocols {
				t.Error("the protocol was switched")
			}
			if rest, err := io.ReadAll(r); len(rest) > 0 || !a.Close {
				t.Errorf("after %d the connection goes on: %.100q, %v", a.StatusCode, rest, err)
			}
		})
	}
}
