package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// keyPage is one API key, with what may be done to it.
type keyPage struct {
	workspace
	apiKeyRow
	form            // of its name and limits
	ForCalls   bool // it makes calls, and may have limits
	Rotation   form // of a new secret
	Expires    time.Time
	ReplacedBy string // where the key that took over stands; "" none
	Beyond     bool   // it may do more than the person's role
	Limits     string
	Models     string
	Addresses  string
}

// keyOf reads the key of the path, where the person may see its kind.
func (p *Pages) keyOf(c echo.Context, who auth.Person) (tenants.APIKey, error) {
	key, err := param(c, id.APIKey, "API key")
	if err != nil {
		return tenants.APIKey{}, err
	}
	k, err := p.tenants.APIKey(c.Request().Context(), who.Tenant, key)
	if err == nil && !mayKey(who.Role, k.Kind) {
		err = tenants.NotFound("API key")
	}
	return k, err
}

func (p *Pages) key(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.keyOf(c, who)
	if err != nil {
		return err
	}
	return p.showKey(c, who, w, k, keyForm(k.Name, k.Limits), form{Values: url.Values{}}, http.StatusOK)
}

func (p *Pages) showKey(c echo.Context, who auth.Person, w workspace, k tenants.APIKey, name, rotation form, status int) error {
	v := keyPage{workspace: w, form: name, Rotation: rotation, Models: strings.Join(k.Models, ", "), Beyond: !reaches(w, k), ForCalls: k.Kind == tenants.ForCustomer}
	if k.Kind == tenants.ForCustomer {
		x, err := p.tenants.Customer(c.Request().Context(), who.Tenant, k.Customer)
		if err != nil {
			return err
		}
		v.Customer = x.Name
	}
	v.apiKeyRow = apiKeyRowOf(k, v.Customer, w.Now)
	v.Limits = sentence(k.Limits)
	if len(k.Limits) == 0 {
		v.Limits = ""
	}
	var from []string
	for _, x := range k.IPAllow {
		from = append(from, x.String())
	}
	v.Addresses = strings.Join(from, ", ")
	if k.ExpiresAt != nil {
		v.Expires = k.ExpiresAt.In(w.Now.Location())
	}
	if next := id.APIKey.Format(k.ReplacedBy); next != "" {
		v.ReplacedBy = "/keys/" + next
	}
	return show(c, status, keyView(v))
}

// rotateKey gives a key a new secret and shows it. A form that is sent again
// finds the key rotated, and makes nothing.
func (p *Pages) rotateKey(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.keyOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if !reaches(w, k) {
		return forbidden(who.Role, changeTenant)
	}
	seconds, err := strconv.ParseInt(f.Get("overlap_seconds"), 10, 32)
	if err != nil {
		f.wrong("overlap_seconds", "Choose for how long the old secret goes on working.")
		return p.showKey(c, who, w, k, keyForm(k.Name, k.Limits), f, http.StatusBadRequest)
	}
	old, made, err := p.tenants.RotateAPIKey(asPerson(c, who), who.Tenant, k.ID, time.Duration(seconds)*time.Second)
	if e := fault.Of(err); e != nil && e.Code == "already_rotated" {
		return show(c, http.StatusConflict, alreadyMadeView(w, k.Name))
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showKey(c, who, w, k, keyForm(k.Name, k.Limits), f, status)
	}
	view, err := p.made(c, who, w, made)
	if err != nil {
		return err
	}
	view.OldEnds, view.Old = old.ExpiresAt.In(w.Now.Location()), keyRowOf(old, "", w.Now).Shown
	return show(c, http.StatusOK, madeView(view))
}

// reaches tells whether a person's role reaches all that a key may do: who
// rotates it sees a secret that does.
func reaches(w workspace, k tenants.APIKey) bool {
	return !slices.ContainsFunc(k.Scopes, func(s string) bool { return !grants(w, s) })
}

// overlapInput is the choice of how long the old secret works on.
func overlapInput(f form) ui.Input {
	in := f.input("overlap_seconds", "The old secret goes on working for")
	in.Hint = "Long enough to put the new one everywhere. Not at all, where others may know the old one: whoever still uses it is refused within a second."
	in.Options = ui.Choose(cmp.Or(in.Value, "86400"),
		ui.Option{Value: "604800", Label: "A week"}, ui.Option{Value: "86400", Label: "A day"},
		ui.Option{Value: "3600", Label: "An hour"}, ui.Option{Value: "0", Label: "Not at all"})
	return in
}
