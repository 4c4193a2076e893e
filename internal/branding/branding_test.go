package branding_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/branding"
	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

type shop struct {
	t       *testing.T
	brands  *branding.Service
	tenants *tenants.Service
}

func newShop(t *testing.T) shop {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	return shop{t, branding.New(db.App, time.Now), tenants.New(db.App, ring, nil, nil, time.Now)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s shop) tenant(name string) uuid.UUID {
	s.t.Helper()
	made, err := s.tenants.Create(s.t.Context(), tenants.NewTenant{Name: name, OwnerEmail: "owner@" + strings.ToLower(name) + ".example"})
	must(s.t, err)
	return made.Tenant.ID
}

// picture is a gradient of a size, as pixels.
func picture(w, h int) image.Image {
	p := image.NewNRGBA(image.Rect(0, 0, w, h))
	for x := range w {
		for y := range h {
			p.Set(x, y, color.NRGBA{uint8(x), uint8(y), 90, uint8(200 + x%50)})
		}
	}
	return p
}

func pngOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, png.Encode(&b, picture(w, h)))
	return b.Bytes()
}

func jpegOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, jpeg.Encode(&b, picture(w, h), nil))
	return b.Bytes()
}

// claiming is a PNG whose header says another size, with a right checksum.
func claiming(t *testing.T, w, h uint32) []byte {
	t.Helper()
	b := pngOf(t, 32, 32)
	binary.BigEndian.PutUint32(b[16:], w)
	binary.BigEndian.PutUint32(b[20:], h)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func TestALogoIsDrawnAgainSoThatNothingButItsPixelsIsServed(t *testing.T) {
	s := newShop(t)
	acme := s.tenant("Acme")
	const script = "<script>alert(1)</script>"
	for name, sent := range map[string][]byte{
		"a PNG with a page behind it":  append(pngOf(t, 64, 32), script...),
		"a JPEG with a page behind it": append(jpegOf(t, 64, 32), script...),
		"a JPEG with a page in it":     append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, byte(2 + len(script))}, append([]byte(script), jpegOf(t, 64, 32)[2:]...)...),
	} {
		b, err := s.brands.SetLogo(t.Context(), acme, sent)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, kind, err := s.brands.LogoFile(t.Context(), b.Logo.Hash)
		must(t, err)
		if bytes.Contains(body, []byte("script")) || kind != b.Logo.Type || b.Logo.Width != 64 || b.Logo.Height != 32 {
			t.Errorf("%s: served as %s, %d × %d, %q", name, kind, b.Logo.Width, b.Logo.Height, body[:20])
		}
		if _, format, err := image.Decode(bytes.NewReader(body)); err != nil || "image/"+format != kind {
			t.Errorf("%s: %s said to be %s, %v", name, format, kind, err)
		}
	}
}

func TestWhatIsNoPictureWithinTheLimitsIsNoLogo(t *testing.T) {
	s := newShop(t)
	acme := s.tenant("Acme")
	var moving bytes.Buffer
	must(t, gif.Encode(&moving, picture(32, 32), nil))
	for name, x := range map[string]struct {
		sent []byte
		code string
	}{
		"nothing":                   {nil, "bad_image"},
		"an SVG":                    {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), "bad_image"},
		"a page":                    {[]byte("<!doctype html><script>alert(1)</script>"), "bad_image"},
		"a page that begins as PNG": {append([]byte("\x89PNG\r\n\x1a\n"), "<script>alert(1)</script>"...), "bad_image"},
		"a GIF":                     {moving.Bytes(), "bad_image"},
		"a PNG cut off":             {pngOf(t, 64, 64)[:200], "bad_image"},
		"a JPEG cut off":            {jpegOf(t, 64, 64)[:300], "bad_image"},
		"a few bytes of 65,535²":    {claiming(t, 65535, 65535), "bad_dimensions"},
		"a few bytes of 2³¹-1 wide": {claiming(t, 1<<31-1, 16), "bad_dimensions"},
		"no pixels":                 {claiming(t, 0, 0), "bad_image"},
		"more said than there is":   {claiming(t, 1000, 1000), "bad_image"},
		"one pixel too wide":        {pngOf(t, branding.MaxLogoSide+1, 16), "bad_dimensions"},
		"one pixel":                 {pngOf(t, 1, 1), "bad_dimensions"},
		"a megabyte behind a PNG":   {append(pngOf(t, 32, 32), make([]byte, 1<<20)...), "too_large"},
	} {
		_, err := s.brands.SetLogo(t.Context(), acme, x.sent)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Code != x.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := s.brands.Brand(t.Context(), acme); err != nil || b.Logo != (branding.Logo{}) {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestALogoThatWasReplacedOrRemovedIsGone(t *testing.T) {
	s := newShop(t)
	acme, other := s.tenant("Acme"), s.tenant("Other")
	first, err := s.brands.SetLogo(t.Context(), acme, pngOf(t, 40, 20))
	must(t, err)
	same, err := s.brands.SetLogo(t.Context(), other, pngOf(t, 40, 20))
	must(t, err)
	if first.Logo != same.Logo {
		t.Fatalf("the same picture has two hashes: %+v, %+v", first.Logo, same.Logo)
	}
	second, err := s.brands.SetLogo(t.Context(), acme, pngOf(t, 20, 40))
	must(t, err)
	if _, _, err := s.brands.LogoFile(t.Context(), first.Logo.Hash); err != nil {
		t.Errorf("the other tenant's: %v", err)
	}
	_, err = s.brands.RemoveLogo(t.Context(), acme)
	must(t, err)
	for _, hash := range []string{second.Logo.Hash, "", "zz", strings.Repeat("0", 64)} {
		if _, _, err := s.brands.LogoFile(t.Context(), hash); fault.Of(err).Code != "not_found" {
			t.Errorf("%q: %v", hash, err)
		}
	}
}

func TestATenantsBrandIsItsOwnAndFallsBackToItsName(t *testing.T) {
	s := newShop(t)
	acme, other := s.tenant("Acme"), s.tenant("Other")
	text := func(s string) *string { return &s }
	off := false
	b, err := s.brands.Change(t.Context(), acme, branding.Change{
		DisplayName: text(" Acme AI "), LegalLine: text("Acme GmbH, Berlin"), Hue: text("plum"), SupportEmail: text("help@acme.example"),
		TermsURL: text("https://acme.example/terms?v=1"), NamesWeir: &off,
	})
	must(t, err)
	read, err := s.brands.Brand(t.Context(), acme)
	must(t, err)
	if read != b || read.Name() != "Acme AI" || read.Tint() != "tinted hue-plum" || read.NamesWeir {
		t.Errorf("got %+v", read)
	}
	b, err = s.brands.Change(t.Context(), acme, branding.Change{DisplayName: text("")})
	if err != nil || b.Name() != "Acme" || b.LegalLine != "Acme GmbH, Berlin" {
		t.Errorf("got %+v, %v", b, err)
	}
	if b, err := s.brands.Brand(t.Context(), other); err != nil || b.Name() != "Other" || b.Tint() != "" || !b.NamesWeir || b.LegalLine != "" {
		t.Errorf("the other's: %+v, %v", b, err)
	}
}

func TestABrandTakesNoScriptAddressNoHeaderBreakAndNoColourOfItsOwn(t *testing.T) {
	s := newShop(t)
	acme := s.tenant("Acme")
	for _, x := range []struct {
		change func(*branding.Change, *string)
		text   string
	}{
		{func(c *branding.Change, s *string) { c.TermsURL = s }, "javascript:alert(1)"},
		{func(c *branding.Change, s *string) { c.TermsURL = s }, "http://acme.example"},
		{func(c *branding.Change, s *string) { c.TermsURL = s }, "https://"},
		{func(c *branding.Change, s *string) { c.TermsURL = s }, "https://a@b.example"},
		{func(c *branding.Change, s *string) { c.TermsURL = s }, "https://b.example/\r\nx"},
		{func(c *branding.Change, s *string) { c.Hue = s }, "red"},
		{func(c *branding.Change, s *string) { c.Hue = s }, "plum x"},
		{func(c *branding.Change, s *string) { c.SenderName = s }, "Acme\r\nBcc: x@y.example"},
		{func(c *branding.Change, s *string) { c.ReplyTo = s }, "Ann <ann@acme.example>"},
		{func(c *branding.Change, s *string) { c.SupportEmail = s }, "x@y.example\r\nBcc: z@y.example"},
		{func(c *branding.Change, s *string) { c.DisplayName = s }, strings.Repeat("a", 81)},
		{func(c *branding.Change, s *string) { c.LegalLine = s }, "two\nlines"},
	} {
		var c branding.Change
		x.change(&c, &x.text)
		if _, err := s.brands.Change(t.Context(), acme, c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", x.text, err)
		}
	}
}

func TestALetterIsFromTheTenantAndNamesWeirOnlyWhereItMay(t *testing.T) {
	b := branding.Brand{Tenant: "Acme", Text: branding.Text{DisplayName: "Acme AI", LegalLine: "Acme GmbH, Berlin", SupportEmail: "help@acme.example"}}
	m := b.Letter(notify.Mail{To: "ann@kestrel.example", Subject: "S", Text: "Hello\n"})
	if m.FromName != "Acme AI" || m.ReplyTo != "help@acme.example" || !strings.Contains(m.Text, "Acme GmbH, Berlin") || strings.Contains(m.Text, "Weir") {
		t.Errorf("got %+v", m)
	}
	b.NamesWeir = true
	if m := b.Letter(notify.Mail{}); !strings.HasSuffix(m.Text, "Limits and metering by Weir\n") {
		t.Errorf("got %q", m.Text)
	}
}
