package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/tenants"
)

// page is the form of every list.
type page[T any] struct {
	Data       []T     `json:"data" required:"true"`
	NextCursor *string `json:"next_cursor" description:"Pass it as ?cursor= to go on; null at the end"`
	HasMore    bool    `json:"has_more"`
}

// listQuery is what every list takes.
type listQuery struct {
	Limit  string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor string `query:"cursor" description:"next_cursor of the page before"`
}

const (
	defaultLimit = 25
	maxLimit     = 100
)

func pageLimit(s string) (int, error) {
	if s == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fault.InvalidFields(fault.Field{Pointer: "?limit", Code: "out_of_range", Message: "limit must be a whole number from 1 to 100."})
	}
	return n, nil
}

// cursors signs where a list goes on, so that a cursor works for the tenant,
// list and filter that it was made for, and for nothing else.
type cursors struct{ key []byte }

func (k cursors) sign(binding string, position []byte) string {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(binding))
	mac.Write([]byte{0})
	mac.Write(position)
	return base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil)[:16], position...))
}

// open returns the position in a cursor; an empty cursor is the beginning. An
// edited one, or another list's, is Invalid invalid_cursor.
func (k cursors) open(binding, cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 16 || !hmac.Equal([]byte(k.sign(binding, raw[16:])), []byte(cursor)) {
		return nil, invalidCursor()
	}
	return raw[16:], nil
}

func invalidCursor() error {
	e := fault.InvalidFields(fault.Field{Pointer: "?cursor", Code: "invalid_cursor", Message: "This cursor is not one that this list gave out. Start again without it."})
	e.Code = "invalid_cursor"
	return e
}

// list runs a listing by id: it opens the cursor, reads one page, and signs the
// next one.
func list[D, W any](s *Server, r *request, q listQuery, name string, read func(after uuid.UUID, limit int) (tenants.Page[D], error), wire func(D) W) (page[W], error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return page[W]{}, err
	}
	binding := r.tenant().String() + "/" + name
	position, err := s.cursors.open(binding, q.Cursor)
	if err != nil {
		return page[W]{}, err
	}
	after := uuid.Nil
	if position != nil {
		if after, err = uuid.FromBytes(position); err != nil {
			return page[W]{}, invalidCursor()
		}
	}
	got, err := read(after, limit)
	if err != nil {
		return page[W]{}, err
	}
	out := page[W]{Data: make([]W, len(got.Items))}
	for i, d := range got.Items {
		out.Data[i] = wire(d)
	}
	if got.Next != uuid.Nil {
		next := s.cursors.sign(binding, got.Next[:])
		out.NextCursor, out.HasMore = &next, true
	}
	return out, nil
}

// listByName is list for what has no id to go on after: all of it, sorted by
// name, of which one page is shown.
func listByName[D, W any](s *Server, r *request, q listQuery, name string, all []D, nameOf func(D) string, wire func(D) W) (page[W], error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return page[W]{}, err
	}
	binding := r.tenant().String() + "/" + name
	position, err := s.cursors.open(binding, q.Cursor)
	if err != nil {
		return page[W]{}, err
	}
	first := 0
	if position != nil {
		first, _ = slices.BinarySearchFunc(all, string(position)+"\x00", func(d D, after string) int { return strings.Compare(nameOf(d), after) })
	}
	rest := all[first:]
	out := page[W]{Data: []W{}, HasMore: len(rest) > limit}
	for _, d := range rest[:min(limit, len(rest))] {
		out.Data = append(out.Data, wire(d))
	}
	if out.HasMore {
		next := s.cursors.sign(binding, []byte(nameOf(rest[limit-1])))
		out.NextCursor = &next
	}
	return out, nil
}
