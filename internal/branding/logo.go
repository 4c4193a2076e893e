package branding

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// What a logo may be. One of these dimensions takes 4 MiB while it is drawn.
const (
	MaxLogoBytes = 512 << 10
	MaxLogoSide  = 1024 // pixels
	minLogoSide  = 16
	jpegQuality  = 90
)

func badLogo(code, message string) *fault.Error {
	return fault.InvalidFields(fault.Field{Pointer: "/logo", Code: code, Message: message})
}

// SetLogo draws a PNG or JPEG again and keeps that. Anything else, and what is
// too large or too small, is Invalid.
func (s *Service) SetLogo(ctx context.Context, tenant uuid.UUID, sent []byte) (Brand, error) {
	drawn, l, err := redraw(sent)
	if err != nil {
		return Brand{}, err
	}
	return s.setLogo(ctx, tenant, drawn, l)
}

// RemoveLogo takes the logo away; again it changes nothing.
func (s *Service) RemoveLogo(ctx context.Context, tenant uuid.UUID) (Brand, error) {
	return s.setLogo(ctx, tenant, nil, Logo{})
}

func (s *Service) setLogo(ctx context.Context, tenant uuid.UUID, drawn []byte, l Logo) (Brand, error) {
	var b Brand
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if b, err = s.lock(ctx, tx, tenant); err != nil || b.Logo == l {
			return err
		}
		b.Logo = l
		hash, err := hex.DecodeString(l.Hash)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update brands
			set logo = $2::bytea, logo_hash = case when $2::bytea is not null then $3::bytea end, logo_type = nullif($4, ''),
			    logo_width = nullif($5, 0), logo_height = nullif($6, 0), changed_at = $7
			where tenant_id = $1`, tenant, drawn, hash, l.Type, l.Width, l.Height, s.now()); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "branding.changed", id.Tenant.Format(tenant), map[string]string{"logo": l.Hash})
	})
	return b, err
}

// redraw reads a picture within the limits and writes its pixels anew: what else
// stood in the bytes, before, between or after them, is gone.
func redraw(sent []byte) ([]byte, Logo, error) {
	if len(sent) > MaxLogoBytes {
		return nil, Logo{}, badLogo("too_large", fmt.Sprintf("The file is larger than %d KiB.", MaxLogoBytes>>10))
	}
	l := Logo{Type: http.DetectContentType(sent)}
	decodeSize, decode := png.DecodeConfig, png.Decode
	switch l.Type {
	case "image/png":
	case "image/jpeg":
		decodeSize, decode = jpeg.DecodeConfig, jpeg.Decode
	default:
		return nil, Logo{}, badLogo("bad_image", "This is neither a PNG nor a JPEG.")
	}
	size, err := decodeSize(bytes.NewReader(sent))
	if err != nil {
		return nil, Logo{}, badLogo("bad_image", "The picture cannot be read: save it again as PNG or JPEG.").Because(err)
	}
	if l.Width, l.Height = size.Width, size.Height; max(l.Width, l.Height) > MaxLogoSide || min(l.Width, l.Height) < minLogoSide {
		return nil, Logo{}, badLogo("bad_dimensions", fmt.Sprintf("The picture is %d × %d pixels; each side may have %d to %d.", l.Width, l.Height, minLogoSide, MaxLogoSide))
	}
	picture, err := decode(bytes.NewReader(sent))
	if err != nil {
		return nil, Logo{}, badLogo("bad_image", "The picture cannot be read: save it again as PNG or JPEG.").Because(err)
	}
	plain := image.NewNRGBA(image.Rect(0, 0, l.Width, l.Height))
	draw.Draw(plain, plain.Bounds(), picture, picture.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if l.Type == "image/png" {
		err = png.Encode(&out, plain)
	} else {
		err = jpeg.Encode(&out, plain, &jpeg.Options{Quality: jpegQuality})
	}
	if err != nil {
		return nil, Logo{}, err
	}
	if out.Len() > 2<<20 {
		return nil, Logo{}, badLogo("too_large", "The picture is too detailed for a logo: make it smaller.")
	}
	sum := sha256.Sum256(out.Bytes())
	l.Hash = hex.EncodeToString(sum[:])
	return out.Bytes(), l, nil
}

// LogoFile is a logo's bytes and type by its hash in hex. NotFound for one that
// no tenant has any more.
func (s *Service) LogoFile(ctx context.Context, hash string) (body []byte, kind string, err error) {
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != sha256.Size {
		return nil, "", tenants.NotFound("logo")
	}
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select body, type from lookup_logo($1)`, sum).Scan(&body, &kind)
		if errors.Is(err, pgx.ErrNoRows) {
			return tenants.NotFound("logo")
		}
		return err
	})
	return body, kind, err
}
