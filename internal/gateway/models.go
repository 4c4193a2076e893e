package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/catalogue"
	"weir/internal/tenants"
)

type modelList struct {
	Object string      `json:"object"`
	Data   []modelJSON `json:"data"`
}

type modelJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// The same in Anthropic's form (https://docs.anthropic.com/en/api/models-list):
// always one page.
type anthropicModels struct {
	Data    []anthropicModel `json:"data"`
	HasMore bool             `json:"has_more"`
	First   *string          `json:"first_id"`
	Last    *string          `json:"last_id"`
}

type anthropicModel struct {
	Type    string    `json:"type"`
	ID      string    `json:"id"`
	Name    string    `json:"display_name"`
	Created time.Time `json:"created_at"`
}

func (m modelJSON) anthropic() anthropicModel {
	return anthropicModel{"model", m.ID, m.ID, time.Unix(m.Created, 0).UTC()}
}

// models are what the caller can ask for, by name: models of keys, and aliases
// of which some key serves a line.
func (s *Server) models(k *caller) ([]modelJSON, error) {
	routes, err := s.Directory.Routes(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, err
	}
	routes = slices.DeleteFunc(slices.Clone(routes), func(r tenants.Route) bool {
		return !r.Key.Usable() || r.Broken != nil || k.who.Key.Test && !r.Endpoint.Provider.Practice
	})
	out := []modelJSON{}
	seen := map[string]bool{}
	add := func(m modelJSON) {
		if !seen[m.ID] && (k.who.Key.Models == nil || slices.Contains(k.who.Key.Models, m.ID)) {
			seen[m.ID] = true
			out = append(out, m)
		}
	}
	aliases, err := s.Directory.Aliases(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, err
	}
	for name, a := range aliases {
		if servedBy(a, routes) {
			add(modelJSON{ID: name, Object: "model", Created: a.CreatedAt.Unix(), OwnedBy: "weir"})
		}
		seen[name] = true // it shadows a model of the same name
	}
	for _, r := range routes {
		for _, m := range r.Key.Models {
			add(modelJSON{ID: m, Object: "model", Created: r.Key.CreatedAt.Unix(), OwnedBy: r.Key.Provider})
		}
	}
	slices.SortFunc(out, func(a, b modelJSON) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// servedBy tells whether some key takes a line of an alias.
func servedBy(a tenants.Alias, routes []tenants.Route) bool {
	return slices.ContainsFunc(a.Candidates, func(c tenants.AliasCandidate) bool { return slices.ContainsFunc(routes, c.Reaches) })
}

func (s *Server) listModels(k *caller) error {
	list, err := s.models(k)
	if err != nil {
		return err
	}
	s.showLimits(k)
	if !k.claude {
		writeJSON(k.echo, http.StatusOK, modelList{Object: "list", Data: list})
		return nil
	}
	page := anthropicModels{Data: []anthropicModel{}}
	for i := range list {
		page.Data = append(page.Data, list[i].anthropic())
		if page.Last = &list[i].ID; i == 0 {
			page.First = &list[i].ID
		}
	}
	writeJSON(k.echo, http.StatusOK, page)
	return nil
}

func (s *Server) getModel(k *caller) error {
	name, err := url.PathUnescape(k.echo.Param("*"))
	if err != nil || !catalogue.ValidModel(name) {
		return unknownModel("")
	}
	list, err := s.models(k)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(m modelJSON) bool { return m.ID == name })
	if i < 0 {
		return unknownModel(name)
	}
	s.showLimits(k)
	if k.claude {
		writeJSON(k.echo, http.StatusOK, list[i].anthropic())
		return nil
	}
	writeJSON(k.echo, http.StatusOK, list[i])
	return nil
}
