package whole

import (
	"fmt"
	"strings"
	"testing"

	"weir/test/stack"
)

// TestAPlanSaysWhetherItCapsAnswers: it is said of each version, in a member and
// in the fine print, and a version that leaves it out does not cap.
func TestAPlanSaysWhetherItCapsAnswers(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 100}}})
	check := func(a stack.Answer, caps bool) {
		t.Helper()
		if a.JSON("version.cap_output") != caps || strings.Contains(fmt.Sprint(a.JSON("version.fine_print")), "states no ceiling") != caps {
			t.Errorf("capped %v: %s", caps, a)
		}
	}
	path := "/api/v1/plans/" + w.Plan
	check(weir.Want(t, 200, "GET", path, w.ManagementKey, nil), false)
	check(weir.Want(t, 201, "POST", path+"/versions", w.ManagementKey, `{"cap_output": true}`), true)
	check(weir.Want(t, 200, "GET", path, w.ManagementKey, nil), false)
	check(weir.Want(t, 200, "POST", path+"/publish", w.ManagementKey, nil), true)
	check(weir.Want(t, 200, "GET", path, w.ManagementKey, nil), true)
	check(weir.Want(t, 201, "POST", path+"/versions", w.ManagementKey, `{}`), false)
	check(weir.Want(t, 201, "POST", "/api/v1/plans", w.ManagementKey, `{"name": "Prepaid", "cap_output": true}`), true)
	weir.Want(t, 400, "POST", "/api/v1/plans", w.ManagementKey, `{"name": "Odd", "cap_output": "yes"}`)
}
