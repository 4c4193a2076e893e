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

	"github.com/google/uuid"

	"weir/internal/devstack/locate"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/postgres"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// admin runs one word of the operator's. It reaches the database of
// DATABASE_URL, or of the development stack that runs in WEIR_DATA.
func admin(ctx context.Context, out io.Writer, args []string) error {
	words := map[string]func(context.Context, io.Writer, []string) error{"create-tenant": createTenant, "sign-in-link": signInLink, "retire-instance": retireInstance}
	if len(args) == 0 || words[args[0]] == nil {
		return errors.New("say `admin create-tenant --name N --owner-email E`, `admin sign-in-link --email E` or `admin retire-instance --instance I --tenant T`")
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

type retiredJSON struct {
	Instance string `json:"instance"`
	Retired  bool   `json:"retired"`
}

// retireInstance says that nothing is to come of an instance that is gone.
func retireInstance(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("admin retire-instance", flag.ContinueOnError)
	named := flags.String("instance", "", "the id of the instance, as the page Pipeline shows it")
	of := flags.String("tenant", "", "ten_… of the operator, in whose audit it is written")
	if err := parse(flags, args); err != nil {
		return err
	}
	instance, err := uuid.Parse(*named)
	if err != nil {
		return fmt.Errorf("--instance: %w", err)
	}
	tenant, err := id.Tenant.Parse(*of)
	if err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	db, ring, _, err := database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	t, err := tenants.New(db, ring, nil, nil, time.Now).Get(ctx, tenant)
	if err != nil {
		return plain(err)
	}
	if !t.Operator {
		return errors.New("--tenant: this is not the operator's tenant")
	}
	if err := usage.NewPipeline(db).Retire(tenants.WithActor(ctx, tenants.Actor{Kind: "operator", Credential: "admin"}), tenant, instance, tenants.Audit); err != nil {
		return plain(err)
	}
	return printJSON(out, retiredJSON{instance.String(), true})
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
	db, ring, base, err := database(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	return tenants.New(db, ring, nil, nil, time.Now), base, db.Close, nil
}

// database opens the database of DATABASE_URL, or of the development stack, with
// its key ring and the address that links begin with.
func database(ctx context.Context) (*postgres.DB, *keyring.Ring, string, error) {
	url, ring, base := os.Getenv("DATABASE_URL"), os.Getenv("KEY_RING"), os.Getenv("PUBLIC_URL")
	if url == "" {
		dir := cmp.Or(os.Getenv("WEIR_DATA"), ".weir")
		d, err := locate.Describe(dir)
		if err != nil {
			return nil, nil, "", fmt.Errorf("DATABASE_URL is not set, and %w: start one with `make run`", err)
		}
		url, ring, base = d.AppURL, d.KeyRing, d.BaseURL
	}
	keys, err := keyring.ParseRing(ring)
	if err != nil {
		return nil, nil, "", fmt.Errorf("KEY_RING: %w", err)
	}
	db, err := postgres.Open(ctx, url, postgres.Options{MaxConns: 2})
	if err != nil {
		return nil, nil, "", err
	}
	if err := db.SelfTest(ctx); err != nil {
		db.Close()
		return nil, nil, "", plain(err)
	}
	return db, keys, strings.TrimRight(base, "/"), nil
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
