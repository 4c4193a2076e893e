package httpapi

import (
	"weir/internal/branding"
)

// exampleLogo is a square of one colour.
const exampleLogo = `{"logo": "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mNIM+4gCTGMahjVMHw1AACC9iEQu8gujgAAAABJRU5ErkJggg=="}`

type brandingBody struct {
	DisplayName  clearable `json:"display_name,omitempty" description:"What customers read; null: the tenant's name"`
	LegalLine    clearable `json:"legal_line,omitempty" description:"Legal name and address in one line; null clears it"`
	Hue          clearable `json:"hue,omitempty" description:"ochre, moss, fir, teal, sky, indigo, violet or plum; null: Weir's own"`
	SenderName   clearable `json:"sender_name,omitempty" description:"Whom mail to customers is from; the address stays the installation's. null: the name"`
	ReplyTo      clearable `json:"reply_to,omitempty" description:"Who gets the answers to mail; null: the support address"`
	SupportEmail clearable `json:"support_email,omitempty" description:"Where customers ask; null clears it"`
	TermsURL     clearable `json:"terms_url,omitempty" description:"https; null clears it"`
	NamesWeir    *bool     `json:"names_weir,omitempty" nullable:"false" description:"Whether pages and mail end with the line: Limits and metering by Weir"`
}

type brandingJSON struct {
	Name         string    `json:"name" description:"What customers read" example:"Acme AI"`
	DisplayName  string    `json:"display_name"`
	LegalLine    string    `json:"legal_line"`
	Hue          string    `json:"hue"`
	SenderName   string    `json:"sender_name"`
	ReplyTo      string    `json:"reply_to"`
	SupportEmail string    `json:"support_email"`
	TermsURL     string    `json:"terms_url"`
	NamesWeir    bool      `json:"names_weir"`
	Logo         *logoJSON `json:"logo" description:"null for none"`
}

type logoJSON struct {
	Path   string `json:"path" description:"Below the installation's address; public, and kept by browsers for ever"`
	Type   string `json:"type" enum:"image/png,image/jpeg"`
	Width  int    `json:"width" description:"Pixels"`
	Height int    `json:"height"`
}

func brandingOf(b branding.Brand) brandingJSON {
	out := brandingJSON{
		Name: b.Name(), DisplayName: b.DisplayName, LegalLine: b.LegalLine, Hue: b.Hue, SenderName: b.SenderName,
		ReplyTo: b.ReplyTo, SupportEmail: b.SupportEmail, TermsURL: b.TermsURL, NamesWeir: b.NamesWeir,
	}
	if path := b.Logo.Path(); path != "" {
		out.Logo = &logoJSON{path, b.Logo.Type, b.Logo.Width, b.Logo.Height}
	}
	return out
}

func getBranding(s *Server, r *request, _ none, _ none) (brandingJSON, error) {
	b, err := s.brands.Brand(r.ctx, r.tenant())
	return brandingOf(b), err
}

func changeBranding(s *Server, r *request, _ none, b brandingBody) (brandingJSON, error) {
	changed, err := s.brands.Change(r.ctx, r.tenant(), branding.Change{
		DisplayName: b.DisplayName.to(), LegalLine: b.LegalLine.to(), Hue: b.Hue.to(), SenderName: b.SenderName.to(),
		ReplyTo: b.ReplyTo.to(), SupportEmail: b.SupportEmail.to(), TermsURL: b.TermsURL.to(), NamesWeir: b.NamesWeir,
	})
	return brandingOf(changed), err
}

type logoBody struct {
	Logo []byte `json:"logo" required:"true" nullable:"false" description:"A PNG or JPEG as base64: at most 512 KiB, each side 16 to 1024 pixels"`
}

func setLogo(s *Server, r *request, _ none, b logoBody) (brandingJSON, error) {
	changed, err := s.brands.SetLogo(r.ctx, r.tenant(), b.Logo)
	return brandingOf(changed), err
}

func removeLogo(s *Server, r *request, _ none, _ none) (none, error) {
	_, err := s.brands.RemoveLogo(r.ctx, r.tenant())
	return none{}, err
}
