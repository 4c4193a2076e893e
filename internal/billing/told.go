package billing

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/message"
)

// toldVersion is the data of plan.published.
type toldVersion struct {
	Plan        string `json:"plan"`
	PlanVersion string `json:"plan_version"`
	Number      int    `json:"number"`
	Sentence    string `json:"sentence"`
}

func tellPublished(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID, v Version) error {
	return message.Emit(ctx, tx, tenant, message.PlanPublished, toldVersion{id.Plan.Format(plan), id.PlanVersion.Format(v.ID), v.Number, Sentence(v.Limits)})
}

// toldSubscription is the data of messages about a subscription.
type toldSubscription struct {
	ID          string `json:"id"`
	Customer    string `json:"customer"`
	Plan        string `json:"plan"`
	PlanVersion string `json:"plan_version"`
}

func tellSubscription(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t message.Type, subscription, customer uuid.UUID, p Plan) error {
	return message.Emit(ctx, tx, tenant, t, toldSubscription{id.Subscription.Format(subscription), id.Customer.Format(customer), id.Plan.Format(p.ID), id.PlanVersion.Format(p.Version.ID)})
}
