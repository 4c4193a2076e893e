package billing

import (
	"context"
	"time"

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

// toldSubscription is the data of messages about a subscription: how it stands
// after what happened.
type toldSubscription struct {
	ID             string    `json:"id"`
	Customer       string    `json:"customer"`
	Plan           string    `json:"plan"`
	PlanVersion    string    `json:"plan_version"`
	Status         Status    `json:"status"`
	Suspended      bool      `json:"suspended"`
	PendingVersion string    `json:"pending_version,omitempty"`
	PeriodStart    time.Time `json:"period_start"`
	PeriodEnd      time.Time `json:"period_end"`
}

func toldOf(sub Subscription) toldSubscription {
	t := toldSubscription{
		ID: id.Subscription.Format(sub.ID), Customer: id.Customer.Format(sub.Customer), Plan: id.Plan.Format(sub.Plan),
		PlanVersion: id.PlanVersion.Format(sub.PlanVersion), Status: sub.Status, Suspended: sub.SuspendedAt != nil,
		PeriodStart: sub.Current.Start, PeriodEnd: sub.Current.End,
	}
	if sub.Pending != uuid.Nil {
		t.PendingVersion = id.PlanVersion.Format(sub.Pending)
	}
	return t
}
