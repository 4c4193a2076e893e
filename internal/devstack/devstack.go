// Package devstack runs everything that Weir needs from outside, Postgres and
// NATS, out of one folder, for development and for tests of the whole.
//
// Production binaries do not link it: they are told where their database and
// their bus are, or do not start.
package devstack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"weir/internal/devstack/localpg"
	"weir/internal/devstack/locate"
)

// Options say where a stack lives and what it is for.
type Options struct {
	Dir   string // all data of the stack; one stack at a time
	PGBin string // folder of Postgres binaries; "" searches
	Fast  bool   // for tests: data need not survive a power cut

	// DatabaseURL names a superuser and a database of a server that runs
	// already, to use instead of one of our own. The roles get new passwords
	// there at every start.
	DatabaseURL string

	// Migrate brings the database to the present schema as the given owner.
	Migrate func(ctx context.Context, ownerURL string) error
}

// Stack is a running Postgres and NATS, with the schema in place.
type Stack struct {
	locate.Description
	SuperURL string // past row-level security: for tests that look at what no role may see

	dir     string
	pg      *localpg.Server // nil when others run it
	nats    *NATS
	release func() error
}

// Start takes the folder, starts both servers on the data that is there and
// brings the schema up to date. It is ErrRunning (of locate) when another stack
// has the folder. The context bounds the start only.
func Start(ctx context.Context, o Options) (*Stack, error) {
	release, err := locate.Lock(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Stack{dir: o.Dir, release: release}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options) error {
	at, database, err := s.startPostgres(ctx, o)
	if err != nil {
		return err
	}
	if s.nats, err = StartNATS(NATSOptions{Dir: filepath.Join(o.Dir, "nats")}); err != nil {
		return err
	}
	s.SuperURL = at.SuperURL(database)
	s.Description = locate.Description{
		OwnerURL:  at.URL(localpg.Owner, database),
		AppURL:    at.URL(localpg.App, database),
		WorkerURL: at.URL(localpg.Worker, database),
		NATSURL:   s.nats.URL(),
	}
	if err := o.Migrate(ctx, s.OwnerURL); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := localpg.Do(ctx, s.SuperURL, at.EnableLogins); err != nil {
		return err
	}
	return locate.Publish(s.dir, s.Description)
}

func (s *Stack) startPostgres(ctx context.Context, o Options) (localpg.Address, string, error) {
	if o.DatabaseURL != "" {
		return provisionElsewhere(ctx, o.DatabaseURL)
	}
	var err error
	s.pg, err = localpg.Start(ctx, localpg.Options{Dir: filepath.Join(o.Dir, "postgres"), Bin: o.PGBin, Fast: o.Fast})
	if err != nil {
		return localpg.Address{}, "", err
	}
	return s.pg.Address, localpg.Database, nil
}

func provisionElsewhere(ctx context.Context, databaseURL string) (localpg.Address, string, error) {
	at, err := localpg.Elsewhere(databaseURL, rand.Text())
	if err != nil {
		return localpg.Address{}, "", fmt.Errorf("DATABASE_URL: %w", err)
	}
	database := cmp.Or(at.Database(), localpg.Database)
	return at, database, at.Provision(ctx, database)
}

// DatabaseGone is closed when our Postgres has ended, by Stop or by itself. It
// is nil, and blocks for ever, when others run it.
func (s *Stack) DatabaseGone() <-chan struct{} {
	if s.pg == nil {
		return nil
	}
	return s.pg.Done()
}

// Stop ends what was started and gives the folder back; data stays. When ctx
// ends first, Postgres is stopped the hard way and recovers at the next start.
func (s *Stack) Stop(ctx context.Context) error {
	err := locate.Withdraw(s.dir)
	if s.nats != nil {
		s.nats.Stop()
	}
	if s.pg != nil {
		err = errors.Join(err, s.pg.Stop(ctx))
	}
	return errors.Join(err, s.release())
}
