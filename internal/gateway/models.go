package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

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

// models are what the caller can ask for, by name.
func (s *Server) models(k *caller) ([]modelJSON, error) {
	routes, err := s.Directory.Routes(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return nil, err
	}
	out := []modelJSON{}
	seen := map[string]bool{}
	for _, r := range routes {
		if !r.Key.Usable() || r.Broken != nil || k.who.Key.Test && !r.Endpoint.Provider.Practice {
			continue
		}
		for _, m := range r.Key.Models {
			if !seen[m] && (k.who.Key.Models == nil || slices.Contains(k.who.Key.Models, m)) {
				seen[m] = true
				out = append(out, modelOfKey(m, r.Key))
			}
		}
	}
	slices.SortFunc(out, func(a, b modelJSON) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func modelOfKey(name string, key tenants.ProviderKey) modelJSON {
	return modelJSON{ID: name, Object: "model", Created: key.CreatedAt.Unix(), OwnedBy: key.Provider}
}

func (s *Server) listModels(k *caller) error {
	list, err := s.models(k)
	if err != nil {
		return err
	}
	s.showLimits(k)
	writeJSON(k.echo, http.StatusOK, modelList{Object: "list", Data: list})
	return nil
}

func (s *Server) getModel(k *caller) error {
	name, err := url.PathUnescape(k.echo.Param("model"))
	if err != nil {
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
	writeJSON(k.echo, http.StatusOK, list[i])
	return nil
}
