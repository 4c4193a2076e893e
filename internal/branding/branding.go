// Package branding is how a tenant looks to its customers: on the portal, on
// quotes and in mail. A tenant says its name, a logo, one of the hues that are
// offered and where answers go; customers need not see Weir.
//
// A logo is a PNG or JPEG that is read within limits and drawn again, so that
// nothing but its pixels is ever served. It is public, under the hash of its
// bytes.
package branding

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Brand is how a tenant looks. The zero value of a text is none.
type Brand struct {
	Tenant    string // the organisation's name, which stands where DisplayName is none
	Text             // what was said
	NamesWeir bool   // "Limits and metering by Weir" stands at the end
	Logo      Logo
}

// Text is what a tenant says of itself.
type Text struct {
	DisplayName  string
	LegalLine    string // legal name and address, in one line
	Hue          string // one of Hues; "": Weir's own
	SenderName   string // of mail; "": the name
	ReplyTo      string
	SupportEmail string
	TermsURL     string // https
}

// Logo is a picture by its hash; the zero Logo is none.
type Logo struct {
	Hash          string // hex
	Type          string // image/png or image/jpeg
	Width, Height int    // pixels
}

// Name is what customers read.
func (b Brand) Name() string { return cmp.Or(b.DisplayName, b.Tenant) }

// Path is where the logo is served, "" for none.
func (l Logo) Path() string {
	if l.Hash == "" {
		return ""
	}
	return "/brand/" + l.Hash
}

// Tint is the class of what stands in the tenant's hue, "" for Weir's own.
func (b Brand) Tint() string {
	if b.Hue == "" {
		return ""
	}
	return "tinted hue-" + b.Hue
}

// Service reads and changes brands. It is safe for concurrent use.
type Service struct {
	db  *postgres.DB
	now func() time.Time
}

// New makes the service.
func New(db *postgres.DB, now func() time.Time) *Service { return &Service{db, now} }

// Brand is how a tenant looks.
func (s *Service) Brand(ctx context.Context, tenant uuid.UUID) (Brand, error) {
	var b Brand
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		b, err = Read(ctx, tx, tenant)
		return err
	})
	return b, err
}

// Read is Brand for a caller who owns the transaction.
func Read(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (Brand, error) {
	var b Brand
	var hash []byte
	err := tx.QueryRow(ctx, `
		select t.name, coalesce(b.display_name, ''), coalesce(b.legal_line, ''), coalesce(b.hue, ''), coalesce(b.sender_name, ''),
		       coalesce(b.reply_to, ''), coalesce(b.support_email, ''), coalesce(b.terms_url, ''), coalesce(b.names_weir, true),
		       b.logo_hash, coalesce(b.logo_type, ''), coalesce(b.logo_width, 0), coalesce(b.logo_height, 0)
		from tenants t left join brands b on b.tenant_id = t.tenant_id
		where t.tenant_id = $1`, tenant).
		Scan(&b.Tenant, &b.DisplayName, &b.LegalLine, &b.Hue, &b.SenderName, &b.ReplyTo, &b.SupportEmail, &b.TermsURL, &b.NamesWeir,
			&hash, &b.Logo.Type, &b.Logo.Width, &b.Logo.Height)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, tenants.NotFound("tenant")
	}
	b.Logo.Hash = hex.EncodeToString(hash)
	return b, err
}
