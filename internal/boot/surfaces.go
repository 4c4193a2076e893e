package boot

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"net/http"
	"strings"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/capacity"
	"weir/internal/catalogue"
	"weir/internal/exports"
	"weir/internal/gateway"
	"weir/internal/httpapi"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web"
)

// surfaces makes the services and mounts what is answered: REST, gateway, pages.
func (a *API) surfaces(ring *keyring.Ring, app []keyring.NamedKey, reports *usage.Reports) (http.Handler, error) {
	var secrets []auth.Secret
	for _, k := range app {
		secrets = append(secrets, auth.Secret{ID: k.Name, Bytes: k.Bytes})
	}
	tokens, err := auth.NewTokenKeys(secrets, a.cfg.PublicURL, a.Now)
	if err != nil {
		return nil, err
	}
	cursorKey, err := hkdf.Key(sha256.New, app[0].Bytes, nil, "weir cursors v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	previewKey, err := hkdf.Key(sha256.New, app[0].Bytes, nil, "weir previews v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	client := catalogue.NewClient(a.guard)
	tenantService := tenants.New(a.db, ring, a.guard, client, a.Now)
	a.tenants = tenantService
	billingService := billing.New(a.db, a.Now)
	billingService.Sign(previewKey)
	a.directory = auth.NewDirectory(a.db, tenantService, billingService, tokens, a.Now)
	a.used = auth.NewLastUsed(tenantService, a.log, a.Now)
	halted, halt := context.WithCancel(context.Background())
	a.halt = halt
	book := catalogue.New(a.db, tenants.Audit)
	teller := notify.New(a.db, tenantService, a.guard, a.Now)
	files := exports.New(a.db, tenantService, reports, a.Now)
	mail := mailer(a.Outbox, notify.SMTP{Addr: a.cfg.SMTPAddr, User: a.cfg.SMTPUser, Password: a.cfg.SMTPPassword, From: a.cfg.MailFrom})
	brands := branding.New(a.db, a.Now)
	door := portal.New(a.db, tenantService, teller, mail, a.cfg.PublicURL, a.log, a.Now)
	spare := capacity.New(tenantService, billingService, a.Now)
	offers := quotes.New(a.db, tenantService, billingService, teller, door, spare, strings.TrimRight(a.cfg.PublicURL, "/"), a.Now)
	rest, err := httpapi.New(httpapi.Deps{
		Halt: halted,
		Log:  a.log, Directory: a.directory, Used: a.used, Tenants: tenantService, Billing: billingService, Meter: a.meter,
		Limits: a.engine, Reports: reports, Exports: files, Importer: usage.NewImporter(a.spool, reports), Catalogue: book, Notify: teller, Portal: door, Brands: brands, Quotes: offers, Capacity: spare, CursorKey: cursorKey, Tokens: tokens, Now: a.Now,
	})
	if err != nil {
		return nil, err
	}
	sessions := auth.NewSessions(a.db, a.Now)
	accounts := auth.NewAccounts(a.db, tenantService, sessions, mail, a.cfg.PublicURL, a.log, a.Now)
	first, token := auth.NewFirst(accounts)
	a.first, a.firstLink = first, strings.TrimRight(a.cfg.PublicURL, "/")+"/first/"+token
	e := newEcho(a.cfg.Proxies, a.log)
	pages, err := web.New(web.Deps{
		Log: a.log, Sessions: sessions, Outbox: a.Outbox, SignUp: a.cfg.SignUp == "open", First: first, Gateway: e,
		Accounts: accounts, Tenants: tenantService, Billing: billingService, Directory: a.directory, Tokens: tokens, Limits: a.engine, Reports: reports, Pipeline: usage.NewPipeline(a.db), Exports: files, Catalogue: book, Notify: teller, Portal: door, Brands: brands, Quotes: offers, Capacity: spare, PublicURL: a.cfg.PublicURL, OpenAPI: rest.OpenAPI(), Now: a.Now,
	})
	if err != nil {
		return nil, err
	}
	rest.Mount(e)
	a.estimates = usage.NewEstimates(a.db, a.log, a.Now)
	gateway.New(gateway.Deps{
		Halt: halted, Log: a.log, Directory: a.directory, Tenants: tenantService, Used: a.used, Client: client, Meter: a.meter, Spool: a.spool, Limits: a.engine,
		Estimates: a.estimates, Timeouts: gateway.DefaultTimeouts, Now: a.Now,
	}).Mount(e)
	pages.Mount(e)
	a.endPages = pages.End
	return e, nil
}

// mailer sends by SMTP where it is configured; in development it keeps mail to
// be looked at. nil: no mail.
func mailer(outbox *notify.Outbox, smtp notify.SMTP) notify.Mailer {
	switch {
	case outbox != nil:
		return outbox
	case smtp.Addr != "":
		return smtp
	}
	return nil
}

func signingKeys(s string) (usage.SigningKeys, error) {
	names, err := keyring.ParseKeys(s)
	if err != nil {
		return usage.SigningKeys{}, err
	}
	keys := usage.SigningKeys{Current: names[0].Name, Keys: map[string][]byte{}}
	for _, k := range names {
		keys.Keys[k.Name] = k.Bytes
	}
	return keys, nil
}
