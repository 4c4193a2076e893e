package web

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/branding"
	"weir/internal/fault"
	"weir/web/ui"
)

// maxLogoForm is the largest form with a logo that is read, in bytes.
const maxLogoForm = branding.MaxLogoBytes + 16<<10

func (p *Pages) mountBrand(e *echo.Echo) {
	p.get(e, "/brand/:hash", p.logo)
	p.post(e, "/settings/brand", p.page(changeTenant, p.saveBrand))
	e.POST("/settings/brand/logo", p.guardedUpTo(maxLogoForm, p.page(changeTenant, p.saveLogo)))
	p.post(e, "/settings/brand/logo/remove", p.page(changeTenant, p.removeLogo))
}

// logo answers with a picture that we drew. Its address is the hash of its bytes,
// so that it may be kept for ever.
func (p *Pages) logo(c echo.Context) error {
	body, kind, err := p.brands.LogoFile(c.Request().Context(), c.Param("hash"))
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Disposition", "inline")
	return c.Blob(http.StatusOK, kind, body)
}

// brandSettings are the settings of how the tenant looks to its customers.
type brandSettings struct {
	branding.Brand
	form
	Logo form
}

func brandForm(b branding.Brand) form {
	f := form{Values: map[string][]string{
		"display_name": {b.DisplayName}, "legal_line": {b.LegalLine}, "hue": {b.Hue}, "sender_name": {b.SenderName},
		"reply_to": {b.ReplyTo}, "support_email": {b.SupportEmail}, "terms_url": {b.TermsURL},
	}}
	if b.NamesWeir {
		f.Set("names_weir", "true")
	}
	return f
}

func (p *Pages) saveBrand(c echo.Context, who auth.Person, w workspace) error {
	return p.settingsForm(c, who, w, func(v *settingsPage) *form { return &v.Brand.form }, "brand-saved", func(f form) error {
		text := func(name string) *string { s := f.Get(name); return &s }
		names := f.Get("names_weir") == "true"
		_, err := p.brands.Change(asPerson(c, who), who.Tenant, branding.Change{
			DisplayName: text("display_name"), LegalLine: text("legal_line"), Hue: text("hue"), SenderName: text("sender_name"),
			ReplyTo: text("reply_to"), SupportEmail: text("support_email"), TermsURL: text("terms_url"), NamesWeir: &names,
		})
		return err
	})
}

func (p *Pages) saveLogo(c echo.Context, who auth.Person, w workspace) error {
	sent, err := uploaded(c, "logo", branding.MaxLogoBytes)
	if err == nil {
		_, err = p.brands.SetLogo(asPerson(c, who), who.Tenant, sent)
	}
	return p.afterLogo(c, who, w, err, "logo-saved")
}

func (p *Pages) removeLogo(c echo.Context, who auth.Person, w workspace) error {
	_, err := p.brands.RemoveLogo(asPerson(c, who), who.Tenant)
	return p.afterLogo(c, who, w, err, "logo-removed")
}

func (p *Pages) afterLogo(c echo.Context, who auth.Person, w workspace, err error, what string) error {
	if err == nil {
		return done(c, "/settings", what)
	}
	var f form
	status, err := f.refuse(err)
	if err != nil {
		return err
	}
	v, err := p.settingsOf(c, who, w)
	if err != nil {
		return err
	}
	v.Brand.Logo = f
	return show(c, status, settingsView(v))
}

// uploaded is a file of a form, of at most so many bytes.
func uploaded(c echo.Context, name string, most int64) ([]byte, error) {
	none := fault.InvalidFields(fault.Field{Pointer: "/" + name, Code: "required", Message: "Choose a file first."})
	head, err := c.FormFile(name)
	if err != nil || head.Size == 0 {
		return nil, none
	}
	file, err := head.Open()
	if err != nil {
		return nil, none.Because(err)
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}

// field is one of the form's that may be empty.
func (b brandSettings) field(name, label, hint string) ui.Input {
	in := b.input(name, label)
	in.Hint, in.Optional = hint, true
	return in
}

// brandedTitle is what a browser's tab says.
func brandedTitle(title string, b branding.Brand) string {
	if b.Name() == "" {
		return title
	}
	return title + " · " + b.Name()
}
