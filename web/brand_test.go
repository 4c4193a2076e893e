package web

import (
	"bytes"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// upload sends a logo as a browser does from one of our own pages.
func (s site) upload(session string, content []byte) answer {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("logo", "logo.png")
	must(s.t, err)
	_, err = part.Write(content)
	must(s.t, err)
	must(s.t, form.Close())
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.server.URL+"/settings/brand/logo", &body)
	must(s.t, err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Cookie", s.cookie+"="+session)
	return s.answer(req)
}

func aLogo(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 60, 20))))
	return b.Bytes()
}

func TestTheOwnerBrandsTheTenantAndItsLogoIsServedForEverAsWhatItIs(t *testing.T) {
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	if a := s.post("/settings/brand", session, url.Values{"display_name": {"Acme <AI>"}, "hue": {"plum"}, "terms_url": {"https://acme.example/terms"}}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if a := s.upload(session, aLogo(t)); a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	page := s.get("/settings", session)
	page.has(t, `class="preview tinted hue-plum"`, "Acme &lt;AI&gt;", "https://acme.example/terms")
	page.hasNot(t, "Limits and metering by Weir</span>\n\t\t</footer>", "Acme <AI>")
	_, rest, _ := strings.Cut(page.body, `src="/brand/`)
	hash, _, found := strings.Cut(rest, `"`)
	a := s.get("/brand/"+hash, "")
	h := a.header
	if !found || a.status != http.StatusOK || h.Get("Content-Type") != "image/png" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Set-Cookie") != "" {
		t.Fatalf("got %d %v", a.status, h)
	}
	if a := s.post("/settings/brand/logo/remove", session, url.Values{}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d", a.status)
	}
	if a := s.get("/brand/"+hash, ""); a.status != http.StatusNotFound {
		t.Errorf("after its removal: %d", a.status)
	}
}

func TestAFileThatIsNoLogoIsRefusedAtItsFieldAndKeepsTheOneThatIsThere(t *testing.T) {
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	s.upload(session, aLogo(t))
	for name, content := range map[string][]byte{
		"neither a PNG nor a JPEG": []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"larger than 512 KiB":      append(aLogo(t), make([]byte, 513<<10)...),
		"Choose a file first":      nil,
	} {
		a := s.upload(session, content)
		if a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, a.status)
		}
		a.has(t, name, `src="/brand/`)
	}
	if a := s.upload(session, make([]byte, 4<<20)); a.status != http.StatusBadRequest {
		t.Errorf("four megabytes: %d", a.status)
	}
}

func TestABrandThatCannotBeIsRefusedAtItsFieldWithWhatWasTyped(t *testing.T) {
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	a := s.post("/settings/brand", session, url.Values{"display_name": {"Acme AI"}, "hue": {"red"}, "terms_url": {"javascript:alert(1)"}})
	if a.status != http.StatusBadRequest {
		t.Fatalf("got %d", a.status)
	}
	a.has(t, "This is none of the hues", "This is not an address such as", `value="Acme AI"`)
	a.hasNot(t, `href="javascript`)
}
