// Package archtest holds the house to its plan: who may import whom, and which
// library may be seen where. The tables are the plan; a package that is in
// none of them fails, so that a new one is placed on purpose.
package archtest

// leaves know nothing of Weir, and every package may know them.
var leaves = []string{"internal/id", "internal/fault", "internal/money"}

// mayImport is who may import which package of Weir besides leaves and packages
// below its own folder. A row stands for everything below its folder too,
// unless that has a row of its own. Tests may import what they like.
var mayImport = map[string][]string{
	"internal/id":       {},
	"internal/fault":    {},
	"internal/money":    {},
	"internal/config":   {},
	"internal/logging":  {},
	"internal/cache":    {},
	"internal/jsonbody": {},

	"db/migrations":     {},
	"internal/postgres": {"db/migrations"},
	"internal/keyring":  {},
	"internal/outbound": {},
	"internal/queue":    {},
	"internal/message":  {},
	"internal/limits":   {},

	"internal/catalogue":       {"internal/outbound", "internal/keyring", "internal/postgres", "internal/limits"},
	"internal/catalogue/mimic": {},
	"internal/tenants":         {"internal/message", "internal/postgres", "internal/keyring", "internal/limits", "internal/catalogue", "internal/outbound"},
	"internal/usage":           {"internal/postgres", "internal/queue", "internal/limits"},
	"internal/billing":         {"internal/message", "internal/postgres", "internal/limits", "internal/tenants", "internal/catalogue", "internal/usage"},
	"internal/auth":            {"internal/postgres", "internal/tenants", "internal/billing", "internal/catalogue", "internal/limits", "internal/keyring", "internal/outbound", "internal/cache", "internal/notify"},
	"internal/notify":          {"internal/limits", "internal/message", "internal/postgres", "internal/tenants", "internal/keyring", "internal/outbound", "internal/usage"},

	"internal/capacity": {"internal/billing", "internal/limits", "internal/tenants"},
	"internal/quotes":   {"internal/billing", "internal/branding", "internal/capacity", "internal/catalogue", "internal/keyring", "internal/limits", "internal/message", "internal/notify", "internal/portal", "internal/postgres", "internal/tenants", "internal/usage"},
	"internal/branding": {"internal/notify", "internal/postgres", "internal/tenants"},
	"internal/portal":   {"internal/branding", "internal/postgres", "internal/tenants", "internal/notify", "internal/auth"},
	"internal/exports":  {"internal/message", "internal/postgres", "internal/tenants", "internal/usage"},

	"internal/verdict": {"internal/limits"},

	"internal/gateway":      domain,
	"internal/gateway/wire": {"internal/limits", "internal/jsonbody"},
	"internal/httpapi":      domain,
	"web":                   append([]string{"docs"}, domain...),

	"internal/boot": {anything},
	"cmd/api":       {"internal/boot", "internal/config", "internal/logging", "internal/postgres", "internal/keyring", "internal/tenants", "internal/usage", "internal/devstack/locate"},
	"cmd/worker":    {"internal/boot", "internal/config", "internal/logging"},
	"cmd/dev":       {anything},

	"internal/devstack":              {},
	"internal/devstack/localpg":      {},
	"internal/devstack/locate":       {},
	"internal/devstack/demo":         {anything},
	"internal/postgres/postgrestest": {"internal/postgres", "db/migrations", "internal/devstack/localpg"},
	"internal/gateway/upstreamtest":  {"internal/catalogue/mimic"},
	"internal/queue/queuetest":       {"internal/queue"},
	"internal/limits/limitstest":     {"internal/limits"},
	"internal/limits/redistest":      {},
	"internal/archtest":              {},

	"client": {},
	"docs":   {},
	"test":   {anything},
}

const anything = "*"

// domain is what the three surfaces share. They import none of each other.
var domain = []string{
	"internal/auth", "internal/billing", "internal/branding", "internal/cache", "internal/capacity", "internal/catalogue", "internal/exports", "internal/jsonbody", "internal/keyring",
	"internal/limits", "internal/message", "internal/notify", "internal/outbound", "internal/portal", "internal/quotes", "internal/tenants", "internal/usage", "internal/verdict",
}

// walls say where a library may be imported; nowhere else. Tests are free.
var walls = map[string][]string{
	"github.com/labstack/echo":        {"internal/gateway", "internal/httpapi", "web", "internal/boot"},
	"github.com/a-h/templ":            {"web"},
	"github.com/yuin/goldmark":        {"web"},
	"github.com/nats-io/nats.go":      {"internal/queue"},
	"github.com/nats-io/nats-server":  {"internal/devstack", "internal/queue/queuetest", "test"},
	"github.com/golang-jwt/jwt":       {"internal/auth"},
	"github.com/coreos/go-oidc":       {"internal/auth"},
	"github.com/redis/rueidis":        {"internal/limits"},
	"github.com/pressly/goose":        {"internal/postgres"},
	"github.com/tink-crypto/tink-go":  {"internal/keyring"},
	"code.dny.dev/ssrf":               {"internal/outbound"},
	"github.com/tiktoken-go":          {"internal/gateway"},
	"github.com/klauspost/compress":   {"web"},
	"github.com/jackc/pgx/v5/pgxpool": {"internal/postgres"},
	"github.com/jackc/pgx": {
		"internal/postgres", "internal/auth", "internal/billing", "internal/branding", "internal/catalogue", "internal/exports", "internal/message", "internal/notify",
		"internal/portal", "internal/quotes", "internal/tenants", "internal/usage", "internal/devstack", "internal/boot", "test",
	},
}

// callWalls say where a function or type of the standard library may be used,
// test files aside.
var callWalls = []struct {
	pkg   string
	names []string
	in    []string
	why   string
}{
	{
		"os",
		[]string{"Getenv", "LookupEnv", "Environ"},
		[]string{"cmd", "internal/postgres/postgrestest", "test"},
		"settings come from the mains",
	},
	{
		"net/http",
		[]string{"Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport", "Client", "Transport"},
		[]string{"internal/outbound", "client", "cmd", "test", "internal/gateway/upstreamtest", practiceClient},
		"outbound makes every client, or the address check is missing",
	},
}

// revealing is where a secret becomes plain text: the keyring that seals it, the
// client that puts it on a request to its provider, what signs webhooks, the
// address of a quote, and what puts a link into the mail that is sent.
var revealing = []string{"internal/keyring", "internal/catalogue/client.go", "internal/notify/sign.go", "internal/notify/link.go", "internal/quotes/link.go"}

// practiceClient reaches the practice provider, which is a function call away
// and not on any network.
const practiceClient = "internal/catalogue/client.go"

// production binaries link nothing that starts a server of its own, and no test
// support.
var (
	production   = []string{"cmd/api", "cmd/worker"}
	notLinked    = []string{"github.com/nats-io/nats-server", "weir/internal/devstack", "weir/internal/postgres/postgrestest", "testing"}
	linkedAnyway = []string{"weir/internal/devstack/locate"}
)
