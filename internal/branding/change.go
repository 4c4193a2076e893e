package branding

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// Change is what changes of a brand; nil leaves it as it is, and an empty text
// clears it.
type Change struct {
	DisplayName  *string
	LegalLine    *string
	Hue          *string
	SenderName   *string
	ReplyTo      *string
	SupportEmail *string
	TermsURL     *string
	NamesWeir    *bool
}

// texts are the members of a change with what they change.
func (c Change) texts(t *Text) []struct {
	pointer string
	to      *string
	what    *string
} {
	return []struct {
		pointer string
		to      *string
		what    *string
	}{
		{"/display_name", c.DisplayName, &t.DisplayName},
		{"/legal_line", c.LegalLine, &t.LegalLine},
		{"/hue", c.Hue, &t.Hue},
		{"/sender_name", c.SenderName, &t.SenderName},
		{"/reply_to", c.ReplyTo, &t.ReplyTo},
		{"/support_email", c.SupportEmail, &t.SupportEmail},
		{"/terms_url", c.TermsURL, &t.TermsURL},
	}
}

// Change changes how a tenant looks, from the next page and mail on.
func (s *Service) Change(ctx context.Context, tenant uuid.UUID, c Change) (Brand, error) {
	var b Brand
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if b, err = s.lock(ctx, tx, tenant); err != nil {
			return err
		}
		changed := map[string]string{}
		for _, m := range c.texts(&b.Text) {
			if m.to != nil && strings.TrimSpace(*m.to) != *m.what {
				*m.what = strings.TrimSpace(*m.to)
				changed[strings.TrimPrefix(m.pointer, "/")] = *m.what
			}
		}
		if c.NamesWeir != nil && *c.NamesWeir != b.NamesWeir {
			b.NamesWeir = *c.NamesWeir
			changed["names_weir"] = fmt.Sprint(b.NamesWeir)
		}
		if wrong := b.check(); len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		if len(changed) == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `
			update brands
			set display_name = $2, legal_line = $3, hue = $4, sender_name = $5, reply_to = $6, support_email = $7, terms_url = $8, names_weir = $9, changed_at = $10
			where tenant_id = $1`,
			tenant, b.DisplayName, b.LegalLine, b.Hue, b.SenderName, b.ReplyTo, b.SupportEmail, b.TermsURL, b.NamesWeir, s.now()); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "branding.changed", id.Tenant.Format(tenant), changed)
	})
	return b, err
}

// lock makes the row where there is none, and waits for whoever changes it.
func (s *Service) lock(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (Brand, error) {
	if _, err := tx.Exec(ctx, `
		insert into brands (tenant_id, changed_at) values ($1, $2)
		on conflict (tenant_id) do nothing`, tenant, s.now()); err != nil {
		return Brand{}, err
	}
	if _, err := tx.Exec(ctx, `select from brands where tenant_id = $1 for update`, tenant); err != nil {
		return Brand{}, err
	}
	return Read(ctx, tx, tenant)
}

func (t Text) check() (wrong []fault.Field) {
	for _, x := range []struct {
		pointer, text string
		most          int
	}{{"/display_name", t.DisplayName, 80}, {"/legal_line", t.LegalLine, 300}, {"/sender_name", t.SenderName, 80}} {
		if utf8.RuneCountInString(x.text) > x.most {
			wrong = append(wrong, fault.Field{Pointer: x.pointer, Code: "too_long", Message: fmt.Sprintf("This may have at most %d characters.", x.most)})
		}
		wrong = append(wrong, tenants.CheckText(x.pointer, x.text)...)
	}
	for _, x := range []struct{ pointer, text string }{{"/reply_to", t.ReplyTo}, {"/support_email", t.SupportEmail}} {
		if x.text != "" {
			wrong = append(wrong, tenants.CheckEmail(x.pointer, x.text)...)
		}
	}
	if t.Hue != "" && !slices.ContainsFunc(Hues, func(h Hue) bool { return h.Name == t.Hue }) {
		var names []string
		for _, h := range Hues {
			names = append(names, h.Name)
		}
		wrong = append(wrong, fault.Field{Pointer: "/hue", Code: "not_one_of", Message: "This is none of the hues: " + strings.Join(names, ", ") + "."})
	}
	return append(wrong, checkTerms(t.TermsURL)...)
}

// checkTerms takes a plain https address of a host with a name.
func checkTerms(s string) []fault.Field {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Opaque != "" || len(s) > 500 || strings.ContainsAny(s, " \\\"'<>") || len(tenants.CheckText("", s)) > 0 {
		return []fault.Field{{Pointer: "/terms_url", Code: "bad_url", Message: "This is not an address such as https://example.com/terms."}}
	}
	return nil
}
