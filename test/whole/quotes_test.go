package whole

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"weir/test/stack"
)

func TestNoQueryAndNoTextOfQuotesPlansAndSubscriptionsIsOurFault(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	quote := weir.Want(t, 201, "POST", "/api/v1/quotes", w.ManagementKey, fmt.Sprintf(
		`{"to": {"name": "Adaeze Finch", "email": "adaeze@marlow.example"}, "plan_version": %q}`, w.Version)).Text("id")
	for _, path := range []string{
		"/api/v1/quotes?q=%00", "/api/v1/quotes?q=%ff", "/api/v1/quotes?q=" + strings.Repeat("%25", 2000), "/api/v1/quotes?q=%5C", "/api/v1/quotes?status=%00", "/api/v1/quotes?status=,",
		"/api/v1/quotes?customer=%00", "/api/v1/quotes?limit=99999999999999999999", "/api/v1/quotes?cursor=%00",
		"/api/v1/quotes/" + quote + "?version=99999999999", "/api/v1/quotes/" + quote + "?version=2147483648", "/api/v1/quotes/" + quote + "?version=-1", "/api/v1/quotes/" + quote + "?version=2", "/api/v1/quotes/" + quote + "?version=%00",
		"/api/v1/subscriptions?status=%00", "/api/v1/subscriptions?plan_version=%00", "/api/v1/subscriptions/" + w.Subscription + "%00", "/api/v1/overrides?customer=%00",
		"/api/v1/plans/" + w.Plan + "/compare?from=99999999999&to=1", "/api/v1/plans/" + w.Plan + "/compare?from=%00", "/api/v1/plans?q=%00",
	} {
		if a := weir.Call(t, "GET", path, w.ManagementKey, nil); a.Status >= 500 {
			t.Errorf("%.100s: %s", path, a)
		}
	}
	limit := `"limit": {"dimension": "requests", "window": "minute", "amount": 700}`
	for _, text := range []string{`\u0000`, `a\r\nBcc: b@x.example`, `\u202egnp`, `\ud800`, `\u2028`, "\x7f", strings.Repeat("a", 5000), `<script>alert(1)</script>`, `=HYPERLINK(\"x\")`, `\ufffe`, `😀`, "\xff\xfe"} {
		for path, body := range map[string]string{
			"/api/v1/quotes":                    fmt.Sprintf(`{"to": {"name": "%s", "email": "a@x.example", "company": "%[1]s"}, "note": "%[1]s", "plan_version": %q}`, text, w.Version),
			"/api/v1/quotes/" + quote + "/send": fmt.Sprintf(`{"reason": "%s"}`, text),
			"/api/v1/overrides":                 fmt.Sprintf(`{"customer": %q, "reason": "%s", %s}`, w.Customer, text, limit),
			"/api/v1/plans":                     fmt.Sprintf(`{"name": "%s", "limits": []}`, text),
			"/api/v1/subscriptions/" + w.Subscription + "/change": fmt.Sprintf(`{"preview_token": "%s"}`, text),
			"/api/v1/plans/" + w.Plan + "/move":                   fmt.Sprintf(`{"preview_token": "%s"}`, text),
			"/api/v1/customers":                                   fmt.Sprintf(`{"name": "%s", "external_id": "%[1]s"}`, text),
		} {
			a := weir.Call(t, "POST", path, w.ManagementKey, body)
			if a.Status >= 500 {
				t.Errorf("%s with %.40q: %s", path, text, a)
			}
		}
	}
	if a := weir.Want(t, 200, "GET", "/api/v1/quotes?q="+url.QueryEscape("Q-2"), w.ManagementKey, nil); a.JSON("data.0.id") == nil {
		t.Errorf("by its number: %s", a)
	}
}
