package httpapi

import (
	"context"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/jsonbody"
	"weir/internal/tenants"
)

// bodyLimit is the largest body of the management surface.
const bodyLimit = 1 << 20

// none stands for "no query parameters" or "no body".
type none struct{}

// endpoint is one route: what the router mounts, what the permission check
// asks, and what the OpenAPI document says.
type endpoint struct {
	method, path string
	scope        string // of a management key; decisionScope is open to customer keys too
	summary      string
	status       int
	query, body  any // zero values, for the document
	answer       any
	example      string // a body that works in a fresh tenant, for the document and its test
	handle       func(*Server, echo.Context) error
}

// decisionScope marks routes for customer keys, and for management keys that
// may decide for any customer.
const decisionScope = "decisions:write"

// request is one authenticated call of a handler.
type request struct {
	echo   echo.Context
	ctx    context.Context
	caller auth.Caller
}

func (r *request) tenant() uuid.UUID { return r.caller.Tenant.ID }

// path is the id in the route; one that is malformed answers like one that does
// not exist.
func (r *request) path(k id.Kind, what string) (uuid.UUID, error) {
	u, err := k.Parse(r.echo.Param("id"))
	if err != nil {
		return uuid.Nil, tenants.NotFound(what)
	}
	return u, nil
}

// on makes an endpoint whose handler gets a decoded query and body. Q and B are
// structs; unknown parameters and members are refused.
func on[Q, B, A any](method, path, scope, summary string, status int, f func(*Server, *request, Q, B) (A, error)) endpoint {
	var q Q
	var b B
	var a A
	return endpoint{
		method: method, path: path, scope: scope, summary: summary, status: status, query: q, body: b, answer: a,
		handle: func(s *Server, c echo.Context) error {
			r, err := s.authenticated(c, scope)
			if err != nil {
				return err
			}
			return s.once(r, func() (int, any, error) {
				var q Q
				var b B
				if err := bindQuery(c, &q); err != nil {
					return 0, nil, err
				}
				if err := bindBody(c, &b); err != nil {
					return 0, nil, err
				}
				answer, err := f(s, r, q, b)
				return status, answer, err
			})
		},
	}
}

// with adds an example body.
func (e endpoint) with(example string) endpoint {
	e.example = example
	return e
}

// bindQuery fills the string fields that carry a query tag. Where that ends in a
// colon, the field is a map of what follows it in the parameters' names.
func bindQuery(c echo.Context, dst any) error {
	v := reflect.ValueOf(dst).Elem()
	known := map[string]reflect.Value{}
	for i := range v.NumField() {
		known[v.Type().Field(i).Tag.Get("query")] = v.Field(i)
	}
	var wrong []fault.Field
	for name, values := range c.QueryParams() {
		field, found := known[name]
		before, after, prefixed := strings.Cut(name, ":")
		many, foundMany := known[before+":"]
		switch {
		case !found && (!prefixed || !foundMany):
			wrong = append(wrong, fault.Field{Pointer: "?" + name, Code: "unknown_field", Message: "There is no such query parameter."})
		case len(values) > 1:
			wrong = append(wrong, fault.Field{Pointer: "?" + name, Code: "duplicate", Message: "This query parameter stands twice."})
		case len(tenants.CheckText("", values[0])) > 0:
			wrong = append(wrong, fault.Field{Pointer: "?" + name, Code: "bad_characters", Message: "This holds control characters, or is not UTF-8."})
		case found:
			field.SetString(values[0])
		default:
			if many.IsNil() {
				many.Set(reflect.MakeMap(many.Type()))
			}
			many.SetMapIndex(reflect.ValueOf(after), reflect.ValueOf(values[0]))
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

func bindBody(c echo.Context, dst any) error {
	method := c.Request().Method
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete {
		return nil
	}
	if enc := c.Request().Header.Get(echo.HeaderContentEncoding); enc != "" {
		return fault.New(fault.Unsupported, "unsupported_encoding", "A compressed body is not read; send it plain.")
	}
	body, err := jsonbody.Read(c.Request().Body, bodyLimit)
	if err != nil {
		return err
	}
	if _, empty := dst.(*none); empty && len(body) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || media != echo.MIMEApplicationJSON {
		return fault.New(fault.Unsupported, "unsupported_media_type", "Send the body as JSON, with Content-Type: application/json.")
	}
	return jsonbody.Decode(body, dst)
}

// authenticated finds the caller and holds the key's kind and scope against the
// route.
func (s *Server) authenticated(c echo.Context, scope string) (*request, error) {
	secret, err := bearer(c.Request())
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	caller, err := s.directory.Caller(ctx, secret, c.RealIP())
	if err != nil {
		return nil, err
	}
	if err := permitted(caller, scope); err != nil {
		return nil, err
	}
	s.used.Note(caller)
	ctx = tenants.WithActor(ctx, tenants.Actor{
		Kind: "api_key", ID: caller.Key.ID, Credential: "…" + caller.Key.Last4, IP: c.RealIP(), RequestID: requestUUID(c),
	})
	return &request{echo: c, ctx: ctx, caller: caller}, nil
}

func permitted(caller auth.Caller, scope string) error {
	switch {
	case caller.Key.Kind == tenants.ForCustomer && scope == decisionScope, scope == "":
		return nil
	case caller.Key.Kind == tenants.ForCustomer:
		return fault.New(fault.Forbidden, "wrong_scope", "A customer key serves the gateway and the decision API; the REST API needs a management key.")
	case !caller.May(scope):
		return fault.Newf(fault.Forbidden, "wrong_scope", "This key lacks the scope %s.", scope)
	}
	return nil
}

// credentialNames are query parameters in which people send keys elsewhere.
var credentialNames = []string{"key", "apikey", "api-key", "x-api-key", "access_token", "token"}

// bearer is the credential of the Authorization header. A key in the URL is
// refused without being read.
func bearer(r *http.Request) (string, error) {
	for name, values := range r.URL.Query() {
		if slices.Contains(credentialNames, strings.ToLower(name)) || slices.ContainsFunc(values, tenants.LooksLikeKey) {
			return "", fault.New(fault.Invalid, "credential_in_url", "A credential in the URL ends up in logs. Send it as a header, and replace this one.")
		}
	}
	scheme, secret, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", fault.New(fault.Unauthenticated, "invalid_api_key", "Send an API key as \"Authorization: Bearer weir_live_…\".")
	}
	return strings.TrimSpace(secret), nil
}
