package httpapi

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/exports"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

type exportBody struct {
	Kind    string        `json:"kind" required:"true" enum:"usage,requests,audit" description:"requests needs the scope requests:read too, audit audit:read"`
	Format  string        `json:"format" required:"true" enum:"csv,json" description:"json is one object a line"`
	From    string        `json:"from" required:"true" description:"RFC 3339, or a date in tz; inclusive" example:"2026-11-01"`
	To      string        `json:"to,omitempty" description:"RFC 3339, or a date in tz; exclusive; absent: now"`
	Bucket  string        `json:"bucket,omitempty" enum:"1m,15m,1h,1d" description:"Of a usage export; absent: 1d"`
	GroupBy string        `json:"group_by,omitempty" description:"Of a usage export: as for GET /api/v1/usage"`
	TZ      string        `json:"tz,omitempty" description:"IANA time zone of times and buckets; absent: the tenant's" example:"Europe/Berlin"`
	Filters exportFilters `json:"filters,omitempty"`
}

type exportFilters struct {
	Customer    string            `json:"customer,omitempty"`
	APIKey      string            `json:"api_key,omitempty"`
	ProviderKey string            `json:"provider_key,omitempty"`
	Model       string            `json:"model,omitempty"`
	Outcome     string            `json:"outcome,omitempty"`
	EndUser     string            `json:"end_user,omitempty"`
	Tags        map[string]string `json:"tags,omitempty" description:"One tag at most"`
	Test        string            `json:"test,omitempty" enum:"include,exclude,only"`
}

func (f exportFilters) none() bool {
	return f.Customer+f.APIKey+f.ProviderKey+f.Model+f.Outcome+f.EndUser+f.Test == "" && len(f.Tags) == 0
}

type exportJSON struct {
	ID        string     `json:"id" example:"exp_01kb0000000000000000000000"`
	Kind      string     `json:"kind"`
	Format    string     `json:"format"`
	Status    string     `json:"status" enum:"queued,running,ready,failed"`
	Progress  float64    `json:"progress" description:"0 to 1"`
	From      time.Time  `json:"from"`
	To        time.Time  `json:"to"`
	TZ        string     `json:"tz"`
	Bucket    string     `json:"bucket,omitempty"`
	GroupBy   string     `json:"group_by,omitempty"`
	Rows      int64      `json:"rows" description:"Without the head and the checksum row"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256,omitempty" description:"Of the whole file"`
	Reason    string     `json:"reason,omitempty" description:"Why it failed"`
	CreatedAt time.Time  `json:"created_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	ExpiresAt time.Time  `json:"expires_at" description:"When the file is removed"`
}

func exportOf(e exports.Export) exportJSON {
	out := exportJSON{
		ID: id.Export.Format(e.ID), Kind: string(e.Kind), Format: string(e.Format), Status: string(e.State), Progress: e.Progress,
		From: e.From.UTC(), To: e.To.UTC(), TZ: e.Zone, Rows: e.Rows, Bytes: e.Bytes, SHA256: hex.EncodeToString(e.SHA256), Reason: e.Reason,
		CreatedAt: e.CreatedAt.UTC(), ExpiresAt: e.ExpiresAt.UTC(),
	}
	if e.Kind == exports.Usage {
		out.Bucket, out.GroupBy = string(e.Bucket), string(e.GroupBy)
	}
	if e.EndedAt != nil {
		ended := e.EndedAt.UTC()
		out.EndedAt = &ended
	}
	return out
}

// sight is what a management key sees: what customers pay always, what the
// providers charge with its scope.
func (r *request) sight() exports.Sight {
	return exports.Sight{Charges: true, Costs: r.caller.May(moneyScope), Customers: true, Keys: true, ProviderKeys: true, Audit: r.caller.May(auditScope)}
}

// mayRead holds the key's scopes against what an export is of.
func (r *request) mayRead(k exports.Kind) error {
	if k == exports.Requests && !r.caller.May("requests:read") {
		return fault.New(fault.Forbidden, "wrong_scope", "This key lacks the scope requests:read.")
	}
	if k == exports.Audit && !r.caller.May(auditScope) {
		return fault.New(fault.Forbidden, "wrong_scope", "This key lacks the scope audit:read.")
	}
	return nil
}

func addExport(s *Server, r *request, _ none, b exportBody) (exportJSON, error) {
	if err := required(map[string]string{"/kind": b.Kind, "/format": b.Format, "/from": b.From}); err != nil {
		return exportJSON{}, err
	}
	if err := r.mayRead(exports.Kind(b.Kind)); err != nil {
		return exportJSON{}, err
	}
	f := b.Filters
	if b.Kind == string(exports.Audit) && !f.none() {
		return exportJSON{}, fault.InvalidFields(fault.Field{Pointer: "/filters", Code: "not_for_this_kind", Message: "Filters are of calls. An audit is exported whole."})
	}
	q, err := s.usageQuery(r, usageQuery{
		From: b.From, To: b.To, Bucket: b.Bucket, GroupBy: b.GroupBy, TZ: b.TZ, Customer: f.Customer, APIKey: f.APIKey, ProviderKey: f.ProviderKey,
		Model: f.Model, Outcome: f.Outcome, EndUser: f.EndUser, Tag: f.Tags, Test: f.Test,
	})
	if err != nil {
		return exportJSON{}, inBody(err)
	}
	e, err := s.exports.Create(r.ctx, r.tenant(), exports.Asked{
		Kind: exports.Kind(b.Kind), Format: exports.Format(b.Format), From: q.From, To: q.To, Zone: q.Zone.String(),
		Bucket: q.Bucket, GroupBy: q.GroupBy, Filter: q.Filter, Sight: r.sight(),
	})
	return exportOf(e), err
}

// inBody moves what is said of query parameters to the members of a body.
func inBody(err error) error {
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Invalid {
		return err
	}
	top := map[string]bool{"?from": true, "?to": true, "?bucket": true, "?group_by": true, "?tz": true}
	moved := make([]fault.Field, len(f.Fields))
	for i, field := range f.Fields {
		switch {
		case top[field.Pointer]:
			field.Pointer = "/" + field.Pointer[1:]
		case strings.HasPrefix(field.Pointer, "?tag:"):
			field.Pointer = "/filters/tags"
		case strings.HasPrefix(field.Pointer, "?"):
			field.Pointer = "/filters/" + field.Pointer[1:]
		}
		moved[i] = field
	}
	return fault.InvalidFields(moved...)
}

func listExports(s *Server, r *request, q listQuery, _ none) (page[exportJSON], error) {
	return list(s, r, q, "exports", func(after uuid.UUID, limit int) (tenants.Page[exports.Export], error) {
		return s.exports.List(r.ctx, r.tenant(), after, limit)
	}, exportOf)
}

func getExport(s *Server, r *request, _ none, _ none) (exportJSON, error) {
	u, err := r.path(id.Export, "export")
	if err != nil {
		return exportJSON{}, err
	}
	e, err := s.exports.Get(r.ctx, r.tenant(), u)
	return exportOf(e), err
}

// exportContent is the route of the file itself, which is no JSON of ours.
func exportContent() endpoint {
	return endpoint{
		method: http.MethodGet, path: "/api/v1/exports/:id/content", scope: usageScope, status: http.StatusOK, query: none{}, body: none{}, answer: none{},
		summary: "Download the file of an export that is ready", handle: (*Server).sendExport,
	}
}

const (
	usageScope = "usage:read"
	auditScope = "audit:read"
)

func (s *Server) sendExport(c echo.Context) error {
	r, err := s.authenticated(c, usageScope)
	if err != nil {
		return err
	}
	u, err := r.path(id.Export, "export")
	if err != nil {
		return err
	}
	e, err := s.exports.Open(r.ctx, r.tenant(), u, r.sight())
	if err != nil {
		return err
	}
	if err := r.mayRead(e.Kind); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, e.MediaType())
	h.Set(echo.HeaderContentDisposition, `attachment; filename="`+e.FileName()+`"`)
	h.Set(echo.HeaderContentLength, strconv.FormatInt(e.Bytes, 10))
	h.Set("ETag", `"`+hex.EncodeToString(e.SHA256)+`"`)
	c.Response().WriteHeader(http.StatusOK)
	if err := s.exports.Copy(r.ctx, r.tenant(), u, c.Response()); err != nil {
		s.log.WarnContext(r.ctx, "export not sent to its end", "export", id.Export.Format(u), "error", err)
		panic(http.ErrAbortHandler) // what was sent is not whole, and must not look so
	}
	return nil
}
