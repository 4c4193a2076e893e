package httpapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

type tokenBody struct {
	ExpiresIn *int64      `json:"expires_in,omitempty" minimum:"1" maximum:"86400" description:"Seconds; absent: 900"`
	Models    []string    `json:"models,omitempty" description:"Fewer models than the key may use; absent: all of them"`
	Limits    []limitBody `json:"limits,omitempty" description:"More limits, of this token alone; at most 10"`
}

type tokenJSON struct {
	Token     string    `json:"token" description:"A JWT (EdDSA); send it where an API key goes. It dies with the key"`
	ExpiresAt time.Time `json:"expires_at"`
}

const maxTokenParts = 10

func mintToken(s *Server, r *request, _ none, b tokenBody) (tokenJSON, error) {
	if r.caller.Key.Kind != tenants.ForCustomer || r.caller.Token != nil {
		return tokenJSON{}, fault.New(fault.Forbidden, "wrong_scope", "Client tokens are minted with a customer's API key itself.")
	}
	list, err := limitsFrom(b.Limits)
	if err != nil {
		return tokenJSON{}, err
	}
	for i := range list {
		list[i] = limits.Default(list[i])
		list[i].ID = id.New()
	}
	if wrong := append(b.check(r.caller.Key.Models), limits.Check(list)...); len(wrong) > 0 {
		return tokenJSON{}, fault.InvalidFields(wrong...)
	}
	life := auth.DefaultTokenLife
	if b.ExpiresIn != nil {
		life = time.Duration(*b.ExpiresIn) * time.Second
	}
	t := auth.ClientToken{ID: id.New(), Tenant: r.tenant(), Key: r.caller.Key.ID, Models: b.Models, Limits: list, ExpiresAt: s.now().Add(life).UTC().Truncate(time.Second)}
	token, err := s.tokens.Mint(t)
	return tokenJSON{Token: token, ExpiresAt: t.ExpiresAt}, err
}

func (b tokenBody) check(ofKey []string) (wrong []fault.Field) {
	if b.ExpiresIn != nil && (*b.ExpiresIn < 1 || *b.ExpiresIn > int64(auth.MaxTokenLife/time.Second)) {
		wrong = append(wrong, fault.Field{Pointer: "/expires_in", Code: "out_of_range", Message: "This must be from 1 to 86,400 seconds."})
	}
	if b.Models != nil && len(b.Models) == 0 || len(b.Models) > maxTokenParts {
		wrong = append(wrong, fault.Field{Pointer: "/models", Code: "out_of_range", Message: "A token names 1 to 10 models; leave the list out for all of the key's."})
	}
	for i, m := range b.Models {
		switch {
		case !catalogue.ValidModel(m):
			wrong = append(wrong, fault.Field{Pointer: "/models/" + itoa(i), Code: "bad_model", Message: "This is not a model name."})
		case ofKey != nil && !slices.Contains(ofKey, m):
			wrong = append(wrong, fault.Field{Pointer: "/models/" + itoa(i), Code: "not_narrower", Message: "The key itself may not use this model."})
		}
	}
	if len(b.Limits) > maxTokenParts {
		wrong = append(wrong, fault.Field{Pointer: "/limits", Code: "too_many", Message: "A token carries at most 10 limits."})
	}
	return wrong
}

// jwks lets others verify client tokens.
func (s *Server) jwks(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.JSON(http.StatusOK, struct {
		Keys []auth.JWK `json:"keys"`
	}{s.tokens.JWKS()})
}
