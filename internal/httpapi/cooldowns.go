package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// cooldownJSON is one bench of a provider key.
type cooldownJSON struct {
	Model   *string    `json:"model" description:"null: every model of the key" example:"gpt-4o"`
	Reason  string     `json:"reason" enum:"rate_limited,daily_cap_spent,rate_limited_again,stated_wait,provider_day_spent,no_credit,model_not_allowed,credential_refused,model_failing"`
	Source  string     `json:"source" enum:"heuristic,authoritative,credit,tier,auth" description:"What it rests on: a guess, the provider's own words, an empty balance, a right that is missing, a refused credential"`
	Status  *int       `json:"provider_status" description:"What the provider answered; null: nothing that could be read"`
	Detail  string     `json:"detail,omitempty" description:"The quota that the provider named" example:"TPM"`
	Since   time.Time  `json:"since"`
	Until   *time.Time `json:"until" description:"null: until a check passes"`
	Step    int        `json:"step" description:"Of the ladder 2 min, 10 min, 1 h, 24 h; 0 is below it"`
	ProbeAt *time.Time `json:"probe_at" description:"When one call may find out whether it is over; null: none does"`
	CheckAt *time.Time `json:"check_at" description:"When Weir checks by a call of its own; null: it does not"`
}

func cooldownOf(h tenants.KeyHealth) cooldownJSON {
	out := cooldownJSON{Reason: string(h.Bench.Reason), Source: string(h.Bench.Source), Detail: h.Bench.Detail, Since: h.Bench.Since, Step: h.Step, CheckAt: h.CheckAt}
	if h.Model != tenants.EveryModel {
		out.Model = &h.Model
	}
	if h.Bench.Status != 0 {
		out.Status = &h.Bench.Status
	}
	if !h.Bench.Until.IsZero() {
		out.Until = &h.Bench.Until
	}
	if at, ok := h.Bench.ProbeAt(); ok {
		out.ProbeAt = &at
	}
	return out
}

// cooldownsJSON is every bench of a key that runs now: there are never more than
// its models and one.
type cooldownsJSON struct {
	Data []cooldownJSON `json:"data" required:"true"`
}

func listCooldowns(s *Server, r *request, _ none, _ none) (cooldownsJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return cooldownsJSON{}, err
	}
	k, err := s.tenants.ProviderKey(r.ctx, r.tenant(), key)
	out := cooldownsJSON{Data: []cooldownJSON{}}
	for _, h := range k.Cooldowns(s.now()) {
		out.Data = append(out.Data, cooldownOf(h))
	}
	return out, err
}

type clearBody struct {
	Model *string `json:"model,omitempty" description:"Only the cooldown of this model; absent: every one of the key" example:"gpt-4o"`
}

type clearedJSON struct {
	Cleared int `json:"cleared" description:"How many cooldowns ran and have ended"`
}

func clearCooldowns(s *Server, r *request, _ none, b clearBody) (clearedJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return clearedJSON{}, err
	}
	n, err := s.tenants.ClearCooldowns(r.ctx, r.tenant(), tenants.Cleared{Key: key, Model: b.Model})
	s.directory.RoutesChanged(r.tenant())
	return clearedJSON{n}, err
}

func clearAllCooldowns(s *Server, r *request, _ none, _ none) (clearedJSON, error) {
	n, err := s.tenants.ClearCooldowns(r.ctx, r.tenant(), tenants.Cleared{Key: uuid.Nil})
	s.directory.RoutesChanged(r.tenant())
	return clearedJSON{n}, err
}

// learnedJSON is a limit as the provider stated it.
type learnedJSON struct {
	Model     string    `json:"model" example:"gpt-4o"`
	Dimension string    `json:"dimension" enum:"requests,tokens,input_tokens,output_tokens"`
	Window    string    `json:"window" enum:"minute,day"`
	Amount    int64     `json:"amount" example:"500"`
	Source    string    `json:"source" enum:"header,body" description:"Where the provider stated it"`
	Detail    string    `json:"detail,omitempty" description:"The header, or the quota that it named" example:"x-ratelimit-limit-requests"`
	LearnedAt time.Time `json:"learned_at" description:"When this amount was stated first"`
	SeenAt    time.Time `json:"seen_at" description:"When it was stated last, to the hour"`
	Counts    bool      `json:"counts" description:"It is tighter than what is configured, or nothing is"`
}

func learnedOf(list []limits.Learned, configured []limits.Limit) []learnedJSON {
	out := make([]learnedJSON, len(list))
	for i, l := range list {
		out[i] = learnedJSON{
			Model: l.Model, Dimension: string(l.Dimension), Window: string(l.Window), Amount: l.Amount, Source: string(l.From), Detail: l.Detail,
			LearnedAt: l.LearnedAt, SeenAt: l.SeenAt, Counts: l.Counts(configured),
		}
	}
	return out
}

type forgetBody struct {
	Model     string `json:"model,omitempty" description:"Absent: of every model" example:"gpt-4o"`
	Dimension string `json:"dimension,omitempty" enum:"requests,tokens,input_tokens,output_tokens" description:"Absent: every dimension"`
	Window    string `json:"window,omitempty" enum:"minute,day" description:"Absent: every window"`
}

type forgottenJSON struct {
	Forgotten int `json:"forgotten" description:"How many learned limits are dropped"`
}

func forgetLearned(s *Server, r *request, _ none, b forgetBody) (forgottenJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return forgottenJSON{}, err
	}
	n, err := s.tenants.ForgetLearned(r.ctx, r.tenant(), key, tenants.Forgotten{Model: b.Model, Dimension: limits.Dimension(b.Dimension), Window: limits.Window(b.Window)})
	s.directory.RoutesChanged(r.tenant())
	return forgottenJSON{n}, err
}
