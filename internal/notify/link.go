package notify

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/keyring"
)

// LinkHere is where the text of a mail that is owed has its link.
const LinkHere = "{{link}}"

// sealLink seals what opens a door to whoever has it: the table of mails may be
// read, in a backup say, before the mail is sent. No link seals to nil.
func (s *Service) sealLink(ctx context.Context, tx pgx.Tx, tenant, mail uuid.UUID, link string) ([]byte, error) {
	if link == "" {
		return nil, nil
	}
	return s.tenants.Seal(ctx, tx, tenant, mail, keyring.NewSecret(link))
}

// fillLink puts a link back into its text. One that does not open is
// Unavailable credential_unavailable.
func (s *Service) fillLink(ctx context.Context, tx pgx.Tx, x dueMail, text string, sealed []byte) (string, error) {
	if sealed == nil {
		return text, nil
	}
	link, err := s.tenants.Open(ctx, tx, x.tenant, x.mail, sealed)
	if err != nil {
		return text, err
	}
	return strings.ReplaceAll(text, LinkHere, link.Reveal()), nil
}
