// Package billing owns what is sold: plans and their immutable versions, the
// sentence that a version says, subscriptions, and the price of a call.
//
// Pure arithmetic (sentence.go, rate.go, period.go) knows neither database nor
// clock.
package billing

import (
	"crypto/rand"
	"time"

	"weir/internal/fault"
	"weir/internal/postgres"
)

// Service reads and changes plans and subscriptions. It is safe for concurrent
// use.
type Service struct {
	db  *postgres.DB
	now func() time.Time
	key []byte // that tokens of previews are signed with
}

// New makes the service. Tokens of its previews are its own, unless Sign gives
// it a key that others have too.
func New(db *postgres.DB, now func() time.Time) *Service {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &Service{db: db, now: now, key: key}
}

// Sign makes the service sign previews with a key: whoever has the same carries
// them out. It is called before the service is used.
func (s *Service) Sign(key []byte) { s.key = key }

// broken maps the constraints that a request can run into to what the caller
// is told.
var broken = map[string]*fault.Error{
	"plans_name_key":                             fault.New(fault.Conflict, "name_taken", "Another plan has this name.").With(fault.Field{Pointer: "/name", Code: "name_taken", Message: "Another plan has this name."}),
	"subscriptions_one_active_key":               fault.New(fault.Conflict, "already_subscribed", "This customer has an active subscription; a customer has at most one."),
	"subscription_transition":                    fault.New(fault.Conflict, "subscription_ended", "This subscription is not what it was; look again."),
	"plan_version_is_frozen":                     fault.New(fault.Conflict, "plan_version_frozen", "A published plan version does not change; make a new version."),
	"plan_versions_current_key":                  fault.New(fault.Conflict, "publish_in_flight", "Another version of this plan was published at the same moment; look again."),
	"plan_versions_tenant_id_plan_id_number_key": fault.New(fault.Conflict, "version_in_flight", "Another version of this plan was made at the same moment; try again."),
}

func conflict(err error) error {
	if f, ok := broken[postgres.Constraint(err)]; ok {
		copied := *f
		return copied.Because(err)
	}
	return err
}
