package exports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// errLost says that another worker has taken the export over.
var errLost = errors.New("exports: the lease was lost")

// file is one that is being made.
type file struct {
	*Maker
	due
	lease uuid.UUID
	asked []byte
	what  Asked
	zone  *time.Location
	names map[uuid.UUID]tenants.Named // of what was met so far

	buffer bytes.Buffer // not yet kept
	sheet  sheet
	before hash.Hash // of what is kept, for the checksum row
	all    hash.Hash
	number int
	rows   int64
	bytes  int64
}

// write makes the file up to its checksum row, which it keeps too. An Invalid
// fault says what is wrong with what is asked for.
func (f *file) write(ctx context.Context) (err error) {
	if err := json.Unmarshal(f.asked, &f.what); err != nil {
		return err
	}
	if f.zone, err = time.LoadLocation(f.what.Zone); err != nil {
		return err
	}
	f.names, f.before, f.all = map[uuid.UUID]tenants.Named{}, sha256.New(), sha256.New()
	f.sheet = newSheet(f.what.Format, &f.buffer)
	switch f.what.Kind {
	case Usage:
		err = f.writeUsage(ctx)
	case Audit:
		err = f.writeAudit(ctx)
	default:
		err = f.writeRequests(ctx)
	}
	if err != nil {
		return err
	}
	f.before.Write(f.buffer.Bytes())
	if err := f.sheet.end(f.rows, hex.EncodeToString(f.before.Sum(nil)), f.what.Zone); err != nil {
		return err
	}
	return f.keep(ctx, 1)
}

// row adds a row.
func (f *file) row(cells []any) error {
	f.rows++
	return f.sheet.row(cells)
}

// keepFull keeps what is written once it is a whole piece.
func (f *file) keepFull(ctx context.Context, progress float64) error {
	if f.buffer.Len() < f.piece {
		return nil
	}
	f.before.Write(f.buffer.Bytes())
	return f.keep(ctx, progress)
}

// keep stores what is written as the next piece, and renews the lease.
func (f *file) keep(ctx context.Context, progress float64) error {
	size := int64(f.buffer.Len())
	now := f.now()
	err := f.db.WithTenant(ctx, f.tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			with mine as (
			    update exports set next_at = $4, progress = $5, written = $6, bytes = bytes + $7
			    where tenant_id = $1 and export_id = $2 and lease = $3 and state = 'running'
			    returning tenant_id, export_id
			)
			insert into export_chunks (tenant_id, export_id, number, body)
			select tenant_id, export_id, $8, $9 from mine`,
			f.tenant, f.export, f.lease, now.Add(leaseFor), progress, f.rows, size, f.number, f.buffer.Bytes())
		if err == nil && tag.RowsAffected() == 0 {
			return errLost
		}
		return err
	})
	if err != nil {
		return err
	}
	f.all.Write(f.buffer.Bytes())
	f.buffer.Reset()
	f.bytes += size
	f.number++
	f.pieced(f.number)
	return nil
}

// finish says that the file is whole.
func (f *file) finish(ctx context.Context) error {
	return f.db.WithTenant(ctx, f.tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update exports set state = 'ready', progress = 1, sha256 = $4, ended_at = $5, lease = null
			where tenant_id = $1 and export_id = $2 and lease = $3 and state = 'running'`, f.tenant, f.export, f.lease, f.all.Sum(nil), f.now())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errLost
		}
		return message.Emit(ctx, tx, f.tenant, message.ExportFinished, told{Export: id.Export.Format(f.export), Status: Ready, Rows: f.rows, Bytes: f.bytes})
	})
}

// mostNames is how many names are remembered while a file is made.
const mostNames = 20_000

// learn reads the names of ids that were not met before.
func (f *file) learn(ctx context.Context, ids []uuid.UUID) error {
	if len(f.names) > mostNames {
		clear(f.names)
	}
	var unknown []uuid.UUID
	for _, u := range ids {
		if _, known := f.names[u]; !known && u != uuid.Nil {
			f.names[u] = tenants.Named{}
			unknown = append(unknown, u)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	names, err := f.tenants.Names(ctx, f.tenant, unknown)
	for u, n := range names {
		f.names[u] = n
	}
	return err
}

// at writes an instant in the file's zone, at the precision of the books.
func (f *file) at(t time.Time) string { return t.In(f.zone).Format("2006-01-02T15:04:05.999999Z07:00") }
