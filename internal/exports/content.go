package exports

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
)

// FileName is what a browser calls the file.
func (e Export) FileName() string {
	ext := ".csv"
	if e.Format == JSON {
		ext = ".jsonl"
	}
	return "weir-" + string(e.Kind) + "-" + e.CreatedAt.UTC().Format(time.DateOnly) + "-" + id.Export.Format(e.ID)[4:12] + ext
}

// MediaType is that of the file.
func (e Export) MediaType() string {
	if e.Format == JSON {
		return "application/x-ndjson"
	}
	return "text/csv; charset=utf-8; header=present"
}

// Open is a file that is ready, for somebody who sees so much. NotFound is as
// for Get; Conflict (export_not_ready) is one that is not made; Forbidden
// (role_not_allowed) one that holds more than they may see.
func (s *Service) Open(ctx context.Context, tenant, export uuid.UUID, sees Sight) (Export, error) {
	e, err := s.Get(ctx, tenant, export)
	switch {
	case err != nil:
		return e, err
	case e.State == Failed:
		return e, fault.New(fault.Conflict, "export_not_ready", "This export could not be made: "+e.Reason)
	case e.State != Ready:
		return e, fault.New(fault.Conflict, "export_not_ready", "This export is not made yet. Ask for its state, and again when it is ready.").After(time.Second)
	case !e.Sight.Within(sees):
		return e, fault.New(fault.Forbidden, "role_not_allowed", "This file holds what only another role may see. Make one of your own.")
	}
	return e, nil
}

// Copy writes the file, piece by piece. The bytes are those that were made.
func (s *Service) Copy(ctx context.Context, tenant, export uuid.UUID, w io.Writer) error {
	for number := 0; ; number++ {
		var body []byte
		err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, `select body from export_chunks where tenant_id = $1 and export_id = $2 and number = $3`, tenant, export, number).Scan(&body)
			if errors.Is(err, pgx.ErrNoRows) {
				body = nil
				return nil
			}
			return err
		})
		if err != nil || body == nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
	}
}
