package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// playPage is the playground: a call to write, and what came of the last one.
type playPage struct {
	workspace
	form
	Keys    []ui.Option
	Known   []string
	Live    bool // the chosen key is a live one
	None    bool // there is nobody to call for
	Result  *playResult
	Gateway bool
}

// playName is the key that the playground makes where a customer has no test
// key.
const playName = "playground"

// mostPlayKeys is how many keys the choice offers.
const mostPlayKeys = 100

func (p *Pages) playground(c echo.Context, who auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.Set("key", c.QueryParam("key"))
	f.Set("model", c.QueryParam("model"))
	f.Set("user", "Say in one sentence what a weir is.")
	f.Set("max_tokens", "256")
	f.Set("stream", "true")
	return p.showPlayground(c, who, w, f, nil, http.StatusOK)
}

func (p *Pages) showPlayground(c echo.Context, who auth.Person, w workspace, f form, r *playResult, status int) error {
	v := playPage{workspace: w, form: f, Result: r, Gateway: p.gateway != nil}
	supply, err := p.supply(c.Request().Context(), who.Tenant)
	if err != nil {
		return err
	}
	v.Known = tenants.AskedNames(supply.aliases, supply.routes)
	if v.Keys, err = p.playKeys(c.Request().Context(), w, f.Get("key")); err != nil {
		return err
	}
	v.None = len(v.Keys) == 0
	for _, k := range v.Keys {
		if k.Chosen {
			f.Set("key", k.Value)
			v.Live = k.Hint != ""
		}
	}
	if f.Get("model") == "" && len(v.Known) > 0 {
		f.Set("model", v.Known[0])
		if slices.Contains(v.Known, "practice-small") {
			f.Set("model", "practice-small")
		}
	}
	return show(c, status, playgroundView(v))
}

// newFor begins the choice of a test key that is yet to be made.
const newFor = "new-"

// playKeys are the keys to call with: test keys first, then for customers
// without one a new one, then live keys, which say so in their hint.
func (p *Pages) playKeys(ctx context.Context, w workspace, chosen string) ([]ui.Option, error) {
	page, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer}, uuid.Nil, mostPlayKeys)
	if err != nil {
		return nil, err
	}
	keys := slices.DeleteFunc(page.Items, func(k tenants.APIKey) bool { return k.Status(w.Now) != "active" })
	if k, err := p.chosenKey(ctx, w, chosen); err == nil && !slices.ContainsFunc(keys, func(x tenants.APIKey) bool { return x.ID == k.ID }) {
		keys = append(keys, k)
	}
	customers, err := p.tenants.Customers(ctx, w.Tenant.ID, uuid.Nil, mostPlayKeys)
	if err != nil {
		return nil, err
	}
	names := map[uuid.UUID]string{}
	for _, x := range customers.Items {
		names[x.ID] = x.Name
	}
	var tests, made, live []ui.Option
	tested := map[uuid.UUID]bool{}
	for _, k := range keys {
		o := ui.Option{Value: id.APIKey.Format(k.ID), Label: k.Name + ", " + cmp.Or(names[k.Customer], id.Customer.Format(k.Customer))}
		if k.Test {
			tested[k.Customer] = true
			tests = append(tests, o)
		} else {
			o.Hint = "live"
			o.Label = "LIVE: " + o.Label
			live = append(live, o)
		}
	}
	for _, x := range customers.Items {
		if !tested[x.ID] && x.SuspendedAt == nil && w.May(changeCustomers) {
			made = append(made, ui.Option{Value: newFor + id.Customer.Format(x.ID), Label: "a new test key for " + x.Name})
		}
	}
	all := slices.Concat(tests, made, live)
	at := slices.IndexFunc(all, func(o ui.Option) bool { return o.Value == chosen })
	if len(all) > 0 {
		all[max(at, 0)].Chosen = true
	}
	return all, nil
}

// chosenKey is a customer's key that works, by its id.
func (p *Pages) chosenKey(ctx context.Context, w workspace, text string) (tenants.APIKey, error) {
	key, err := id.APIKey.Parse(text)
	if err != nil {
		return tenants.APIKey{}, tenants.NotFound("API key")
	}
	k, err := p.tenants.APIKey(ctx, w.Tenant.ID, key)
	if err == nil && (k.Kind != tenants.ForCustomer || k.Status(w.Now) != "active") {
		err = tenants.NotFound("API key")
	}
	return k, err
}

// playForm reads the call that was written. What is not right is noted in the
// form.
func (f *form) playForm() (b playBody, wait int64) {
	b.Model = strings.TrimSpace(f.Get("model"))
	if b.Model == "" {
		f.wrong("model", "Say which model or alias to ask for.")
	}
	if s := strings.TrimSpace(f.Get("system")); s != "" {
		b.Messages = append(b.Messages, playMessage{"system", s})
	}
	if strings.TrimSpace(f.Get("user")) == "" {
		f.wrong("user", "Write something to be answered.")
	}
	b.Messages = append(b.Messages, playMessage{"user", f.Get("user")})
	number := func(name string, most int64) (n int64) {
		if strings.TrimSpace(f.Get(name)) == "" {
			return 0
		}
		if n = f.whole(name); f.Error(name) == "" && (n < 0 || n > most) {
			f.wrong(name, "This is at most "+ui.Count(most)+".")
		}
		return n
	}
	b.MaxTokens = number("max_tokens", 1_000_000)
	wait = number("wait", 60_000)
	if text := strings.TrimSpace(f.Get("temperature")); text != "" {
		t, err := strconv.ParseFloat(text, 64)
		if err != nil || !(t >= 0 && t <= 2) {
			f.wrong("temperature", "A temperature is a number from 0 to 2, such as 0.7.")
		}
		b.Temperature = &t
	}
	if b.Stream = f.Get("stream") != ""; b.Stream {
		b.Options = &streamOptions{Usage: true}
	}
	return b, wait
}

// prepare finds or makes the key of a call and writes its body. Where a field is
// not right, the form says so and ok is false.
func (p *Pages) prepare(c echo.Context, who auth.Person, w workspace, f *form) (call playCall, body playBody, ok bool, err error) {
	body, call.Wait = f.playForm()
	call.Model, call.Stream = body.Model, body.Stream
	if len(f.Wrong) > 0 {
		return call, body, false, nil
	}
	if call.Key, err = p.keyToPlay(c, who, w, f); err != nil || len(f.Wrong) > 0 {
		return call, body, false, err
	}
	if !call.Key.Test {
		if f.Get("live") == "" {
			f.wrong("live", "This is a live key: the call reaches the provider, counts for the customer and is billed. Tick that you mean it, or choose a test key.")
			return call, body, false, nil
		}
		if err := p.tenants.NoteTry(asPerson(c, who), who.Tenant, call.Key.ID, call.Model); err != nil {
			return call, body, false, err
		}
	}
	call.Body, err = json.MarshalIndent(body, "", "  ")
	return call, body, err == nil, err
}

// keyToPlay is the chosen key, or a test key that is made for the chosen
// customer: named so that the next call finds it.
func (p *Pages) keyToPlay(c echo.Context, who auth.Person, w workspace, f *form) (tenants.APIKey, error) {
	customer, isNew := strings.CutPrefix(f.Get("key"), newFor)
	if !isNew {
		k, err := p.chosenKey(c.Request().Context(), w, f.Get("key"))
		if fault.Is(err, fault.NotFound) {
			f.wrong("key", "This key does not work any more. Choose another one.")
			err = nil
		}
		return k, err
	}
	of, wrong := id.Customer.Parse(customer)
	if wrong != nil {
		f.wrong("key", "There is no such customer.")
		return tenants.APIKey{}, nil //nolint:nilerr // the form says it
	}
	if !w.May(changeCustomers) {
		return tenants.APIKey{}, forbidden(who.Role, changeCustomers)
	}
	if k, found, err := p.testKeyOf(c.Request().Context(), w, of); err != nil || found {
		f.Set("key", id.APIKey.Format(k.ID))
		return k, err
	}
	if err := p.ensurePractice(c, who, w); err != nil && fault.Of(err).Kind != fault.Forbidden {
		return tenants.APIKey{}, err
	}
	k, err := p.tenants.AddAPIKey(asPerson(c, who), who.Tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: of, Name: playName, Test: true})
	if err != nil {
		return tenants.APIKey{}, err
	}
	p.directory.RoutesChanged(who.Tenant)
	f.Set("key", id.APIKey.Format(k.ID))
	return k.APIKey, nil
}

// testKeyOf is a test key of a customer that works.
func (p *Pages) testKeyOf(ctx context.Context, w workspace, customer uuid.UUID) (k tenants.APIKey, found bool, err error) {
	page, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer, Customer: customer}, uuid.Nil, mostPlayKeys)
	i := slices.IndexFunc(page.Items, func(k tenants.APIKey) bool { return k.Test && k.Status(w.Now) == "active" })
	if err != nil || i < 0 {
		return k, false, err
	}
	return page.Items[i], true, nil
}

// play answers POST /playground: it makes the call, and shows the page with
// what came of it.
func (p *Pages) play(c echo.Context, who auth.Person, w workspace) error {
	if p.gateway == nil {
		return echo.ErrNotFound
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	call, body, ok, err := p.prepare(c, who, w, &f)
	if err != nil {
		return err
	}
	if !ok {
		return p.showPlayground(c, who, w, f, nil, http.StatusBadRequest)
	}
	var r *playResult
	if f.Get("do") == "burst" {
		r, err = p.burst(c, who, w, call, body)
	} else {
		r, err = p.playOne(c, who, w, call, body, nil)
	}
	if err != nil {
		return err
	}
	return p.showPlayground(c, who, w, f, r, http.StatusOK)
}

// playStream answers POST /playground/stream, as the page's script asks:
// server-sent events with each word as it comes, then the result as a part of
// the page. A form that is not right is answered with its page.
func (p *Pages) playStream(c echo.Context, who auth.Person, w workspace) error {
	if p.gateway == nil {
		return echo.ErrNotFound
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	call, body, ok, err := p.prepare(c, who, w, &f)
	if err != nil {
		return err
	}
	if !ok {
		return p.showPlayground(c, who, w, f, nil, http.StatusBadRequest)
	}
	res := c.Response()
	res.Header().Set(echo.HeaderContentType, "text/event-stream")
	res.Header().Set("X-Accel-Buffering", "no")
	res.WriteHeader(http.StatusOK)
	say := func(event, text string) {
		data, _ := json.Marshal(text) // a string
		_, _ = res.Write([]byte("event: " + event + "\ndata: " + string(data) + "\n\n"))
		_ = http.NewResponseController(res).Flush() // the browser went
	}
	say("key", f.Get("key"))
	r, err := p.playOne(c, who, w, call, body, func(text string) { say("text", text) })
	if err != nil {
		p.log.ErrorContext(c.Request().Context(), "call of the playground failed", "request_id", requestID(c), "error", err)
		say("failed", "The call could not be made. It was logged as "+requestID(c)+".")
		return nil
	}
	var html strings.Builder
	if err := playResultView(*r).Render(c.Request().Context(), &html); err != nil {
		return err
	}
	say("done", html.String())
	return nil
}
