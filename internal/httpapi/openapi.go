package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/jsonschema-go"
	"github.com/swaggest/openapi-go"
	"github.com/swaggest/openapi-go/openapi31"
)

var pathParam = regexp.MustCompile(`/:(\w+)`)

// document writes the OpenAPI 3.1 description of the routes from the very
// types that the handlers decode and answer with.
func document(routes []endpoint) ([]byte, error) {
	r := openapi31.NewReflector()
	r.Spec.Info.WithTitle("Weir").WithVersion("1").WithDescription("Limits, metering and quoting for LLM traffic. " +
		"Management routes take a management key with the scope named in each description; the decision API takes customer keys, and management keys with decisions:write. " +
		"Every error is application/problem+json (RFC 9457). Amounts of money are decimal strings; times are RFC 3339 in UTC.")
	r.Spec.SetHTTPBearerTokenSecurity("key", "weir_live_… or weir_test_…", "An API key of Weir")
	r.DefaultOptions = append(r.DefaultOptions, jsonschema.InterceptDefName(defName))
	r.AddTypeMapping(item[reservationBody]{}, reservationBody{})
	r.AddTypeMapping(item[settlementBody]{}, settlementBody{})
	r.AddTypeMapping(item[eventBody]{}, eventBody{})
	for _, p := range routes {
		if err := describe(r, p); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.method, p.path, err)
		}
	}
	return json.Marshal(r.Spec)
}

// described is the document of this binary. To write it takes far longer than
// everything else of a start, and every server of a process has the same one.
var described = sync.OnceValues(func() ([]byte, error) { return document(endpoints()) })

// defName shortens HttpapiCustomerJSON to Customer.
func defName(_ reflect.Type, name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "Httpapi"), "JSON")
}

type idParam struct {
	ID string `path:"id"`
}

type onceParam struct {
	Key string `header:"Idempotency-Key" description:"Your own id of this request, kept for 48 hours: sent again with the same body it is carried out once, and answered as before, without secrets"`
}

type onceReserveParam struct {
	Key string `header:"Idempotency-Key" description:"Your own id of this request, kept by the limiter until an hour after the reservation ends: sent again with the same body it is one reservation, with another body it is refused (422). In a batch each entry is bound to its place. A refusal, or cancelling, leaves the key free"`
}

func describe(r *openapi31.Reflector, p endpoint) error {
	op, err := r.NewOperationContext(p.method, pathParam.ReplaceAllString(p.path, "/{$1}"))
	if err != nil {
		return err
	}
	op.SetSummary(p.summary)
	op.SetTags(tag(p.path))
	if p.scope != "" {
		op.SetDescription("Scope: `" + p.scope + "`.")
	}
	op.AddSecurity("key")
	if strings.Contains(p.path, ":id") {
		op.AddReqStructure(idParam{})
	}
	if p.method == http.MethodPost && strings.HasPrefix(p.path, "/api/v1/") {
		op.AddReqStructure(onceParam{})
	}
	if p.method == http.MethodPost && strings.TrimSuffix(p.path, ":batch") == "/v1/reservations" {
		op.AddReqStructure(onceReserveParam{})
	}
	if _, empty := p.query.(none); !empty {
		op.AddReqStructure(p.query)
	}
	if _, empty := p.body.(none); !empty {
		op.AddReqStructure(p.body, func(cu *openapi.ContentUnit) { cu.ContentType = echo.MIMEApplicationJSON })
	}
	if _, empty := p.answer.(none); empty {
		op.AddRespStructure(nil, openapi.WithHTTPStatus(p.status))
	} else {
		op.AddRespStructure(p.answer, openapi.WithHTTPStatus(p.status))
	}
	op.AddRespStructure(problem{}, func(cu *openapi.ContentUnit) { cu.IsDefault, cu.ContentType = true, "application/problem+json" })
	if err := r.AddOperation(op); err != nil {
		return err
	}
	nameFamilies(r, p)
	return addExample(r, p)
}

// nameFamilies describes parameters whose names go on after a colon, which
// OpenAPI has no form for, by one whose name shows the form.
func nameFamilies(r *openapi31.Reflector, p endpoint) {
	item := r.Spec.Paths.MapOfPathItemValues[pathParam.ReplaceAllString(p.path, "/{$1}")]
	if p.method != http.MethodGet || item.Get == nil {
		return
	}
	for i := range item.Get.Parameters {
		if f := item.Get.Parameters[i].Parameter; f != nil && strings.HasSuffix(f.Name, ":") {
			f.Name, f.Style, f.Explode, f.Schema = f.Name+"<name>", nil, nil, map[string]any{"type": "string"}
		}
	}
}

func addExample(r *openapi31.Reflector, p endpoint) error {
	if p.example == "" {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(p.example), &value); err != nil {
		return err
	}
	item := r.Spec.Paths.MapOfPathItemValues[pathParam.ReplaceAllString(p.path, "/{$1}")]
	op := item.Post
	if p.method == http.MethodPatch {
		op = item.Patch
	}
	content := op.RequestBody.RequestBody.Content[echo.MIMEApplicationJSON]
	content.Example = &value
	op.RequestBody.RequestBody.Content[echo.MIMEApplicationJSON] = content
	return nil
}

func tag(path string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/v1/"), "/")
	name, _, _ := strings.Cut(parts[0], ":")
	return name
}
