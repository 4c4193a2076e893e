// Package config is every setting that Weir reads from its environment, with
// its unit and default. .env.example lists the same ones; a test holds the two
// equal. Values are read once, at the start.
package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Common is what both processes read.
type Common struct {
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info"` // debug, info, warn, error
	NATSURL     string `env:"NATS_URL,required,notEmpty"`
	NATSUser    string `env:"NATS_USER"`
	NATSPass    string `env:"NATS_PASSWORD"`
	NATSCreds   string `env:"NATS_CREDS_FILE"`
	EventKeys   string `env:"EVENT_KEYS,required,notEmpty"` // id:base64 of 32 bytes, several joined by commas, the current one first
	DatabaseMax int32  `env:"DATABASE_MAX_CONNS" envDefault:"20"`
}

// API is what cmd/api reads.
type API struct {
	Common
	DatabaseURL   string         `env:"DATABASE_URL,required,notEmpty"` // as weir_app
	Listen        string         `env:"LISTEN_ADDR" envDefault:":8080"`
	PublicURL     string         `env:"PUBLIC_URL,required,notEmpty"`               // what people's browsers call this installation
	KeyRing       string         `env:"KEY_RING,required,notEmpty"`                 // key-encryption keys, as EVENT_KEYS
	AppKeys       string         `env:"APP_KEYS,required,notEmpty"`                 // as EVENT_KEYS: sign cursors and client tokens
	RedisURL      string         `env:"REDIS_URL"`                                  // "": limits are kept in this process, which then is the only API process
	RedisBudget   time.Duration  `env:"REDIS_BUDGET" envDefault:"25ms"`             // how long a decision waits for Redis
	Replicas      int            `env:"API_PROCESSES" envDefault:"1"`               // how many share the limits, at least, while Redis is out
	SpoolDir      string         `env:"SPOOL_DIR,required,notEmpty"`                // on a persistent volume
	AdoptAfter    time.Duration  `env:"SPOOL_ADOPT_AFTER" envDefault:"1m"`          // of silence, of a spool beside; 0: never
	SpoolSync     time.Duration  `env:"SPOOL_SYNC" envDefault:"100ms"`              // how often the spool is forced to disk
	Proxies       []netip.Prefix `env:"TRUSTED_PROXIES"`                            // CIDR blocks whose X-Forwarded-For is believed
	AllowLoopback bool           `env:"OUTBOUND_ALLOW_LOOPBACK" envDefault:"false"` // development and tests only
	OutboundPorts []uint16       `env:"OUTBOUND_PORTS"`                             // beside 443
	SMTPAddr      string         `env:"SMTP_ADDR"`                                  // host:port; "": no mail is sent, so nobody can sign up or reset a password alone
	SMTPUser      string         `env:"SMTP_USER"`
	SMTPPassword  string         `env:"SMTP_PASSWORD"`
	MailFrom      string         `env:"MAIL_FROM"`                   // "Weir <weir@example.com>"
	SignUp        string         `env:"SIGN_UP" envDefault:"closed"` // open or closed
	LameDuck      time.Duration  `env:"LAME_DUCK" envDefault:"5s"`   // from not ready to refusing connections
	DrainFor      time.Duration  `env:"DRAIN" envDefault:"30s"`      // how long running calls may finish
}

// Worker is what cmd/worker reads.
type Worker struct {
	Common
	DatabaseURL string `env:"WORKER_DATABASE_URL,required,notEmpty"` // as weir_worker
	Workers     int    `env:"WORKERS" envDefault:"2"`                // messages stored at once
	UsageDays   int    `env:"USAGE_DAYS" envDefault:"400"`           // how long calls are kept

	// What follows is as for the API: webhooks, alerts and mail.
	AppURL        string   `env:"DATABASE_URL,required,notEmpty"` // as weir_app
	PublicURL     string   `env:"PUBLIC_URL,required,notEmpty"`
	KeyRing       string   `env:"KEY_RING,required,notEmpty"`
	AllowLoopback bool     `env:"OUTBOUND_ALLOW_LOOPBACK" envDefault:"false"`
	OutboundPorts []uint16 `env:"OUTBOUND_PORTS"`
	SMTPAddr      string   `env:"SMTP_ADDR"` // "": mail stays owed
	SMTPUser      string   `env:"SMTP_USER"`
	SMTPPassword  string   `env:"SMTP_PASSWORD"`
	MailFrom      string   `env:"MAIL_FROM"`
}

// Migrate is what `api migrate` reads.
type Migrate struct {
	DatabaseURL string `env:"MIGRATE_DATABASE_URL,required,notEmpty"` // as the role that owns the tables
}

// Load reads the settings of T from "NAME=value" pairs. What is missing or
// cannot be read is one error that names it; no value is ever repeated.
func Load[T any](environ []string) (T, error) {
	c, err := env.ParseAsWithOptions[T](env.Options{Environment: pairs(environ)})
	if err != nil {
		return c, fmt.Errorf("configuration: %w", named(err, reflect.TypeFor[T]()))
	}
	return c, nil
}

func pairs(environ []string) map[string]string {
	out := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		out[name] = value
	}
	return out
}

// named keeps of a parse error which setting it is about, without its value.
func named(err error, settings reflect.Type) error {
	agg, ok := err.(env.AggregateError) //nolint:errorlint // the library returns it bare
	if !ok {
		return fmt.Errorf("%T", err)
	}
	var words []string
	for _, e := range agg.Errors {
		switch e := e.(type) { //nolint:errorlint // as above
		case env.VarIsNotSetError:
			words = append(words, e.Key+" is not set")
		case env.EmptyVarError:
			words = append(words, e.Key+" is empty")
		case env.ParseError:
			words = append(words, "the value of "+setting(settings, e.Name)+" cannot be read as "+e.Type.String())
		default:
			words = append(words, fmt.Sprintf("%T", e))
		}
	}
	return fmt.Errorf("%s", strings.Join(words, "; "))
}

// setting is the environment's name of a field.
func setting(settings reflect.Type, field string) string {
	f, _ := settings.FieldByName(field)
	name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
	return name
}
