package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// sentName is the key of a call that the page sends by itself.
const sentName = "Sent from the set-up"

// sendWithin bounds a call that a page waits for.
const sendWithin = 20 * time.Second

// reply is an answer that is taken inside the process.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is http.ResponseWriter's.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader is http.ResponseWriter's.
func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write is http.ResponseWriter's.
func (r *reply) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// problem is what an answer of the gateway says that is no success.
func (r *reply) problem() (code, message string) {
	var body struct {
		Error struct{ Message, Code string } `json:"error"`
	}
	if err := json.Unmarshal(r.body.Bytes(), &body); err != nil {
		return "", http.StatusText(r.status)
	}
	return body.Error.Code, body.Error.Message
}

// callGateway makes a practice call with a key, through the gateway as anybody's
// call goes.
func (p *Pages) callGateway(c echo.Context, secret string) (*reply, error) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), sendWithin)
	defer cancel()
	body := strings.NewReader(`{"model": "practice-small", "messages": [{"role": "user", "content": "Hello"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.publicURL+"/v1/chat/completions", body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(echo.HeaderAuthorization, "Bearer "+secret)
	req.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	req.RemoteAddr = c.Request().RemoteAddr
	r := &reply{header: http.Header{}}
	p.gateway.ServeHTTP(r, req)
	return r, nil
}

// maySend tells whether the page can make a call by itself: there is a gateway,
// a customer to call for, and the practice provider, or the right to add it.
func (p *Pages) maySend(ctx context.Context, v *setupPage) (bool, error) {
	if p.gateway == nil || !v.HasKey || !v.May(changeCustomers) || !v.May(seeCustomerKeys) {
		return false, nil
	}
	if v.May(seeProviderKeys) {
		return true, nil
	}
	return p.hasPractice(ctx, v.Tenant.ID)
}

func (p *Pages) hasPractice(ctx context.Context, tenant uuid.UUID) (bool, error) {
	page, err := p.tenants.ProviderKeys(ctx, tenant, uuid.Nil, 100)
	for _, k := range page.Items {
		if k.Provider == "practice" && k.Usable() {
			return true, err
		}
	}
	return false, err
}

// sendKey makes a test key of the set-up's customer that ends within the hour,
// and adds the practice provider where it is missing.
func (p *Pages) sendKey(c echo.Context, who auth.Person, w workspace, n tenants.NewAPIKey) (tenants.IssuedKey, error) {
	ctx := asPerson(c, who)
	of, found, err := p.setupCustomer(ctx, w)
	if err == nil && !found {
		err = fault.New(fault.Conflict, "customer_needed", "A customer with a key is needed first: step 3 makes both.")
	}
	if err != nil {
		return tenants.IssuedKey{}, err
	}
	if err := p.ensurePractice(c, who, w); err != nil {
		return tenants.IssuedKey{}, err
	}
	until := p.now().Add(tripLife)
	n.Kind, n.Customer, n.Test, n.ExpiresAt = tenants.ForCustomer, of.Customer, true, &until
	return p.tenants.AddAPIKey(ctx, who.Tenant, n)
}

// ensurePractice adds the practice provider where none is usable. One that came
// in this very moment will do.
func (p *Pages) ensurePractice(c echo.Context, who auth.Person, w workspace) error {
	there, err := p.hasPractice(c.Request().Context(), who.Tenant)
	if err != nil || there {
		return err
	}
	if !w.May(seeProviderKeys) {
		return forbidden(who.Role, seeProviderKeys)
	}
	name, err := p.freeName(c, who, "practice")
	if err != nil {
		return err
	}
	_, err = p.tenants.AddProviderKey(asPerson(c, who), who.Tenant, tenants.NewProviderKey{Provider: "practice", Name: name})
	if e := fault.Of(err); e != nil && e.Code == "name_taken" {
		return nil
	}
	return err
}

// sendFor makes a key for a step, and calls with it so often. A form that came
// before makes nothing; then last is nil.
func (p *Pages) sendFor(c echo.Context, who auth.Person, w workspace, n tenants.NewAPIKey, times int) (last *reply, err error) {
	k, err := p.sendKey(c, who, w, n)
	if e := fault.Of(err); e != nil && e.Code == "already_made" {
		return nil, nil //nolint:nilnil // as said
	}
	if err != nil {
		return nil, err
	}
	for range times {
		if last, err = p.callGateway(c, k.Secret); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// setupSend makes the first call by itself, for who has no terminal at hand.
func (p *Pages) setupSend(c echo.Context, who auth.Person, w workspace) error {
	return p.sending(c, who, w, "call", func(f *form, once uuid.UUID) (*setupPage, error) {
		r, err := p.sendFor(c, who, w, tenants.NewAPIKey{ID: once, Name: sentName}, 1)
		if err == nil && r != nil && r.status != http.StatusOK {
			_, message := r.problem()
			f.wrong("", "The call was sent and did not succeed. The gateway says: "+message)
		}
		return nil, err
	})
}

// setupTrip makes two calls of which the second is refused, and shows that
// answer as it came.
func (p *Pages) setupTrip(c echo.Context, who auth.Person, w workspace) error {
	return p.sending(c, who, w, "refusal", func(f *form, once uuid.UUID) (*setupPage, error) {
		r, err := p.sendFor(c, who, w, tenants.NewAPIKey{
			ID: once, Name: tripName, Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 1}},
		}, 2)
		if err != nil || r == nil {
			return nil, err
		}
		code, message := r.problem()
		if r.status != http.StatusTooManyRequests {
			f.wrong("", "Two calls were sent, and the second was not refused by a limit. The gateway says: "+message)
			return nil, nil
		}
		return &setupPage{workspace: w, Open: "refusal", Answer: &refusalStory{
			At: p.now().In(w.Now.Location()), Status: r.status, Lines: headerLines(r.header, code), Code: code, Message: message,
			Href: "/requests/" + r.header.Get(echo.HeaderXRequestID),
		}}, nil
	})
}

// sending runs what a step sends by itself: it leads on to the step, or shows
// what came of it.
func (p *Pages) sending(c echo.Context, who auth.Person, w workspace, step string, do func(f *form, once uuid.UUID) (*setupPage, error)) error {
	if !w.May(seeCustomerKeys) {
		return forbidden(who.Role, seeCustomerKeys)
	}
	if p.gateway == nil {
		return echo.ErrNotFound
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	once := f.once(p.now())
	var shown *setupPage
	if len(f.Wrong) == 0 {
		shown, err = do(&f, once)
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.again(c, who, w, step, f, status)
	}
	f.Set("once", id.APIKey.Format(id.At(p.now())))
	switch {
	case shown != nil:
		return p.showSetup(c, who, *shown, http.StatusOK)
	case len(f.Wrong) > 0:
		return p.again(c, who, w, step, f, http.StatusBadRequest)
	}
	return c.Redirect(http.StatusSeeOther, "/setup?step="+step)
}
