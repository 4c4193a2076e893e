package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// pipelinePage is what GET /pipeline shows the operator of an installation: how
// far the books are, who feeds them, and what could not be counted.
type pipelinePage struct {
	workspace
	State   usage.PipelineState
	Letters []usage.Letter
	All     bool // counted letters too
}

// letterPage is one dead letter.
type letterPage struct {
	workspace
	form
	Letter  usage.Letter
	Read    bool // what came is shown
	Payload string
}

// operators is a page for those who keep the books of the operator's own tenant:
// of every other one it is not there.
func (p *Pages) operators(h func(echo.Context, auth.Person, workspace) error) echo.HandlerFunc {
	return p.page(keepBooks, func(c echo.Context, who auth.Person, w workspace) error {
		if !w.Tenant.Operator {
			return echo.ErrNotFound
		}
		return h(c, who, w)
	})
}

// operatorsOwn are the entries of the rail that people of the operator's tenant who
// may keep books have beside the others.
func operatorsOwn(nav []navGroup, path string) []navGroup {
	e := entry{Path: "/pipeline", Icon: "reconcile", Words: "Pipeline", Apart: true}
	e.Current = path == e.Path || strings.HasPrefix(path, e.Path+"/")
	at := slices.IndexFunc(nav, func(g navGroup) bool { return g.Title == apiReference })
	if at < 0 {
		at = len(nav)
	}
	return slices.Insert(slices.Clone(nav), at, navGroup{"Operator", []entry{e}})
}

func (p *Pages) pipelinePage(c echo.Context, _ auth.Person, w workspace) error {
	v := pipelinePage{workspace: w, All: c.QueryParam("letters") == "all"}
	var err error
	if v.State, err = p.pipeline.State(c.Request().Context()); err != nil {
		return err
	}
	if v.Letters, err = p.pipeline.Letters(c.Request().Context(), v.All); err != nil {
		return err
	}
	return show(c, http.StatusOK, pipelineView(v))
}

// longestPayload is how much of a dead letter is shown.
const longestPayload = 64 << 10

// letterPage shows a dead letter; what came, which is a tenant's, only to who says
// why they read it (POST), and that is written into both audits first.
func (p *Pages) letterPage(c echo.Context, who auth.Person, w workspace) error {
	letter, err := uuid.Parse(c.Param("letter"))
	if err != nil {
		return echo.ErrNotFound
	}
	ctx, status := c.Request().Context(), http.StatusOK
	v := letterPage{workspace: w, form: form{Values: url.Values{}}}
	if c.Request().Method == http.MethodPost {
		if v.form, err = typed(c); err != nil {
			return err
		}
		v.Letter, err = p.pipeline.Read(asPerson(c, who), w.Tenant.ID, letter, v.Get("reason"), tenants.Audit, tenants.AuditOperator)
		if err == nil {
			v.Read, v.Payload = true, shown(v.Letter.Payload)
			return show(c, http.StatusOK, letterView(v))
		}
		if status, err = v.refuse(err); err != nil {
			return err
		}
	}
	if v.Letter, err = p.pipeline.Letter(ctx, letter); err != nil {
		return err
	}
	return show(c, status, letterView(v))
}

// shown is a payload as text, of a bounded length.
func shown(b []byte) string {
	cut := b[:min(len(b), longestPayload)]
	if !utf8.Valid(cut) {
		return strconv.QuoteToASCII(string(cut))
	}
	return string(cut)
}

func (p *Pages) retireInstance(c echo.Context, who auth.Person, w workspace) error {
	instance, err := asked(c, "instance")
	if err != nil {
		return err
	}
	if err := p.pipeline.Retire(asPerson(c, who), w.Tenant.ID, instance, tenants.Audit); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/pipeline?done=instance-retired")
}

func (p *Pages) replayLetter(c echo.Context, who auth.Person, w workspace) error {
	letter, err := asked(c, "letter")
	if err != nil {
		return err
	}
	if err := p.pipeline.AskReplay(asPerson(c, who), w.Tenant.ID, letter, tenants.Audit); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/pipeline/letters/"+letter.String()+"?done=letter-asked")
}

// asked reads the UUID that a form is about.
func asked(c echo.Context, name string) (uuid.UUID, error) {
	f, err := typed(c)
	if err != nil {
		return uuid.Nil, err
	}
	u, err := uuid.Parse(f.Get(name))
	if err != nil {
		return uuid.Nil, fault.New(fault.NotFound, "not_found", "There is nothing with this id.")
	}
	return u, nil
}

// title says how far the books are.
func (v pipelinePage) title() string {
	switch n := len(v.State.Letters); {
	case v.State.Missing > 0:
		return ui.Count(v.State.Missing) + " events are on their way to the books."
	case n > 0:
		return "The books have every event but dead letters."
	}
	return "The books have every event."
}

// letters is how many dead letters stand.
func (v pipelinePage) letters() (n int64) {
	for _, k := range v.State.Letters {
		n += int64(k)
	}
	return n
}

// standing is how an instance stands.
func (v pipelinePage) standing(i usage.InstanceState) (ui.Tone, string) {
	switch {
	case i.Live(v.State.AsOf):
		return ui.OK, "runs"
	case i.StoppedAt != nil:
		return ui.Idle, "stopped"
	case i.Retired != nil:
		return ui.Idle, "retired"
	case i.Missing > 0:
		return ui.Bad, "gone, events are missing"
	}
	return ui.Warn, "gone"
}

// lag is how far behind the books are for an instance.
func (v pipelinePage) lag(i usage.InstanceState) string {
	switch {
	case i.Over() || i.Missing == 0:
		return "none"
	case i.FreshAt == nil:
		return "not known"
	}
	return ui.Span(v.State.AsOf.Sub(*i.FreshAt).Round(time.Second))
}

// running is how many instances say that they run.
func (v pipelinePage) running() (n int64) {
	for _, i := range v.State.Instances {
		if i.Live(v.State.AsOf) {
			n++
		}
	}
	return n
}

// adoption says who brings an instance's spool into the books.
func (v pipelinePage) adoption(i usage.InstanceState) string {
	if i.AdoptedBy == nil || i.AdoptedAt == nil {
		return ""
	}
	by := i.AdoptedBy.String()
	for _, x := range v.State.Instances {
		if x.ID == *i.AdoptedBy {
			by = x.Host + ", " + by
		}
	}
	return "adopted by " + by + " " + ui.Instant(i.AdoptedAt.In(v.Now.Location()), v.Now)
}

// committed is how many numbers of an instance are in the books.
func committed(i usage.InstanceState) int64 { return max(given(i)-i.Missing, 0) }

// given are the numbers of an instance, of all its shards.
func given(i usage.InstanceState) (n int64) {
	for _, s := range i.Shards {
		n += s.Given
	}
	return n
}

// letterStanding is how a dead letter stands.
func letterStanding(l usage.Letter) (ui.Tone, string) {
	switch {
	case l.ReplayedAt != nil:
		return ui.OK, "counted since"
	case l.AskedAt != nil:
		return ui.Warn, "is being tried"
	case l.Refused != nil:
		return ui.Bad, "tried, still " + reasonWords(*l.Refused)
	}
	return ui.Bad, reasonWords(l.Reason)
}

// reasonWords are the reason of a dead letter for people.
func reasonWords(reason string) string {
	if w := map[string]string{
		"bad_signature": "not signed by a key that is known", "bad_run": "not as many lines as numbers", "bad_body": "no event", "other_shard": "of another shard",
		"conflict": "another body under a taken id", "not_storable": "not taken by the database", "too_late": "of a day whose calls are no longer kept", "absurd_time": "of an absurd time",
	}[reason]; w != "" {
		return w
	}
	return strings.ReplaceAll(reason, "_", " ")
}
