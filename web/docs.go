package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/web/reference"
)

// docs is the reference as its page shows it.
type docs struct {
	About     string
	PublicURL string
	Problem   []reference.Member // of every error's body
	Parts     []docsPart
}

// docsPart is a surface: the management API or the decision API.
type docsPart struct {
	Title  string
	Groups []reference.Group
}

// groupNames are titles, in the order to read them; other groups follow by
// their own names.
var groupNames = []struct{ group, title string }{
	{"provider-keys", "Provider keys"},
	{"plans", "Plans"},
	{"customers", "Customers"},
	{"subscriptions", "Subscriptions"},
	{"api-keys", "API keys"},
	{"webhook-endpoints", "Webhook endpoints"},
	{"webhook-messages", "Webhook messages"},
	{"alerts", "Alerts"},
	{"usage", "Usage"},
	{"requests", "Requests"},
	{"reservations", "Reservations"},
	{"limits", "Limits"},
}

func groupTitle(name string) string {
	for _, g := range groupNames {
		if g.group == name {
			return g.title
		}
	}
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")
}

func groupRank(name string) int {
	for i, g := range groupNames {
		if g.group == name {
			return i
		}
	}
	return len(groupNames)
}

// docsPage answers GET /docs. It is for everybody, and needs no database.
func (p *Pages) docsPage(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return show(c, http.StatusOK, docsView(docsOf(p.reference, p.publicURL)))
}

func docsOf(ref reference.Reference, publicURL string) docs {
	d := docs{About: ref.About, PublicURL: publicURL, Parts: []docsPart{{Title: "Management API"}, {Title: "Decision API"}}}
	groups := slices.Clone(ref.Groups)
	slices.SortStableFunc(groups, func(a, b reference.Group) int { return cmp.Compare(groupRank(a.Name), groupRank(b.Name)) })
	for _, g := range groups {
		part := &d.Parts[0]
		if !strings.HasPrefix(g.Operations[0].Path, "/api/") {
			part = &d.Parts[1]
		}
		part.Groups = append(part.Groups, g)
		for _, op := range g.Operations {
			for _, a := range op.Answers {
				if isProblem(a) && d.Problem == nil {
					d.Problem = slices.DeleteFunc(slices.Clone(a.Members), func(m reference.Member) bool { return strings.HasPrefix(m.Name, "violations[].") })
				}
			}
		}
	}
	return d
}

// isProblem tells whether an answer is the one shape that all errors have; it
// is described once.
func isProblem(a reference.Answer) bool { return a.Media == "application/problem+json" }

// kindOf says in words what a member takes, and where a parameter stands.
func kindOf(m reference.Member) string {
	words := []string{m.Type}
	if m.Range != "" {
		words = append(words, m.Range)
	}
	if m.In != "" {
		words = append(words, "in the "+m.In)
	}
	return strings.Join(words, ", ")
}

// short is a summary as navigation needs it: up to its first pause.
func short(summary string) string {
	if i := strings.IndexAny(summary, ";:,"); i > 0 {
		return summary[:i]
	}
	return summary
}

// curl is the operation as a line for a shell.
func curl(publicURL string, op reference.Operation) string {
	line := "curl"
	if op.Method != http.MethodGet && (op.Method != http.MethodPost || op.Example == "") {
		line += " -X " + op.Method
	}
	line += " " + quoted(publicURL+op.Path) + " \\\n  -H \"Authorization: Bearer $WEIR_KEY\""
	if op.Example != "" {
		line += " \\\n  -H \"Content-Type: application/json\" \\\n  -d " + quoted(op.Example)
	}
	return line
}

// plain are the characters that a shell leaves alone.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.-_"

// quoted is s as one word of a shell.
func quoted(s string) string {
	if strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// problemExample is an error as it comes.
const problemExample = `{
  "type": "/docs/errors#invalid_fields",
  "title": "Bad Request",
  "status": 400,
  "detail": "A name is needed.",
  "code": "invalid_fields",
  "request_id": "req_01kb…",
  "errors": [
    {
      "pointer": "/name",
      "code": "required",
      "message": "A name is needed."
    }
  ]
}`

// firstCall is a call through the gateway.
func firstCall(publicURL string) string {
	return "curl " + quoted(publicURL+"/v1/chat/completions") + " \\\n" +
		"  -H \"Authorization: Bearer $CUSTOMER_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n" +
		"  -d '{\"model\": \"practice-small\",\n       \"messages\": [{\"role\": \"user\",\n                     \"content\": \"Hello\"}]}'"
}
