package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"weir/internal/devstack/locate"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// admin runs one word of the operator's. It reaches the database of
// DATABASE_URL, or of the development stack that runs in WEIR_DATA.
func admin(ctx context.Context, out io.Writer, args []string) error {
	words := map[string]func(context.Context, io.Writer, []string) error{"create-tenant": createTenant, "sign-in-link": signInLink}
	if len(args) == 0 || words[args[0]] == nil {
		return errors.New("say `admin create-tenant --name N --owner-email E` or `admin sign-in-link --email E`")
	}
	return words[args[0]](ctx, out, args[1:])
}

// createdJSON is what create-tenant prints.
type createdJSON struct {
	Tenant        string `json:"tenant"`
	Name          string `json:"name"`
	Zone          string `json:"zone"`
	ManagementKey string `json:"management_key"`
	SignInLink    string `json:"sign_in_link"`
}

func createTenant(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("admin create-tenant", flag.ContinueOnError)
	var n tenants.NewTenant
	flags.StringVar(&n.Name, "name", "", "the tenant's name")
	flags.StringVar(&n.OwnerEmail, "owner-email", "", "e-mail address of its owner")
	flags.StringVar(&n.OwnerName, "owner-name", "", "the owner's name")
	flags.StringVar(&n.Zone, "zone", "UTC", "IANA time zone in which the tenant's days begin")
	flags.StringVar(&n.Currency, "currency", "USD", "currency that the tenant bills in")
	flags.BoolVar(&n.Operator, "operator", false, "make it tenant zero, which sells the service")
	if err := parse(flags, args); err != nil {
		return err
	}
	s, base, done, err := services(ctx)
	if err != nil {
		return err
	}
	defer done()
	c, err := s.Create(ctx, n)
	if err != nil {
		return plain(err)
	}
	return printJSON(out, createdJSON{
		Tenant: id.Tenant.Format(c.Tenant.ID), Name: c.Tenant.Name, Zone: c.Tenant.Zone,
		ManagementKey: c.ManagementKey.Secret, SignInLink: base + "/sign-in/" + c.SignInToken,
	})
}

type linkJSON struct {
	SignInLink string    `json:"sign_in_link"`
	ExpiresAt  time.Time `json:"expires_at"`
}

func signInLink(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("admin sign-in-link", flag.ContinueOnError)
	email := flags.String("email", "", "e-mail address of a member")
	tenant := flags.String("tenant", "", "ten_… to sign in to; needed when the person belongs to several")
	if err := parse(flags, args); err != nil {
		return err
	}
	s, base, done, err := services(ctx)
	if err != nil {
		return err
	}
	defer done()
	token, expires, err := s.SignInLink(ctx, *email, *tenant)
	if err != nil {
		return plain(err)
	}
	return printJSON(out, linkJSON{SignInLink: base + "/sign-in/" + token, ExpiresAt: expires})
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q", flags.Args())
	}
	return nil
}

// services opens what the words need: the database, the key ring, and the
// address that links begin with.
func services(ctx context.Context) (*tenants.Service, string, func(), error) {
	url, ring, base := os.Getenv("DATABASE_URL"), os.Getenv("KEY_RING"), os.Getenv("PUBLIC_URL")
	if url == "" {
		dir := cmp.Or(os.Getenv("WEIR_DATA"), ".weir")
		d, err := locate.Describe(dir)
		if err != nil {
			return nil, "", nil, fmt.Errorf("DATABASE_URL is not set, and %w: start one with `make run`", err)
		}
		url, ring, base = d.AppURL, d.KeyRing, d.BaseURL
	}
	keys, err := keyring.ParseRing(ring)
	if err != nil {
		return nil, "", nil, fmt.Errorf("KEY_RING: %w", err)
	}
	db, err := postgres.Open(ctx, url, postgres.Options{MaxConns: 2})
	if err != nil {
		return nil, "", nil, err
	}
	if err := db.SelfTest(ctx); err != nil {
		db.Close()
		return nil, "", nil, plain(err)
	}
	return tenants.New(db, keys, nil, nil, time.Now), strings.TrimRight(base, "/"), db.Close, nil
}

// plain words an error for a terminal.
func plain(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	words := []string{f.Message}
	for _, field := range f.Fields {
		if field.Message != f.Message {
			words = append(words, strings.ReplaceAll(strings.TrimPrefix(field.Pointer, "/"), "_", "-")+": "+field.Message)
		}
	}
	return errors.New(strings.Join(words, " "))
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
