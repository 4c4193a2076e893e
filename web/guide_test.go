package web

import "testing"

func TestHowLimitsCountIsReadInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	s.get("/docs/limits", "").has(t, "<title>Limits", `href="#policies"`, `<h2 id="policies">Policies</h2>`, "at most 999 in any 60 s", "██", "<table>")
}

func TestWhatTheGatewayTranslatesIsReadInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	s.get("/docs/gateway", "").has(t, "<title>The gateway", `href="#forms-and-translation"`, "What is refused", "<table>", "tool_result")
	s.get("/docs", "").has(t, `href="/docs/gateway"`)
}

func TestWhatUsageCountsIsReadInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	s.get("/docs/usage", "").has(t, "<title>Usage", "complete_until", `href="#margin"`)
}

func TestTheDecisionAPIIsReadInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	s.get("/docs/decisions", "").has(t, "<title>The decision API", `href="#waiting"`, `<h2 id="waiting">Waiting</h2>`, "POST /v1/reservations", `<a href="/docs/limits">limits</a>`)
	s.get("/docs", "").has(t, `href="/docs/decisions"`)
}
