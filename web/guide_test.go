package web

import "testing"

func TestHowLimitsCountIsReadInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	s.get("/docs/limits", "").has(t, "<title>Limits", `href="#policies"`, `<h2 id="policies">Policies</h2>`, "at most 999 in any 60 s", "██", "<table>")
}
