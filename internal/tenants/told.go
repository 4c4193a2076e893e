package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
)

// toldCustomer is the data of messages about a customer.
type toldCustomer struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Email       string     `json:"email,omitempty"`
	ExternalID  string     `json:"external_id,omitempty"`
	SuspendedAt *time.Time `json:"suspended_at"`
}

func tellCustomer(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t message.Type, c Customer) error {
	return message.Emit(ctx, tx, tenant, t, toldCustomer{id.Customer.Format(c.ID), c.Name, c.Email, c.ExternalID, c.SuspendedAt})
}

// toldKey is the data of messages about an API key.
type toldKey struct {
	ID         string     `json:"id"`
	Kind       KeyKind    `json:"kind"`
	Name       string     `json:"name"`
	Customer   string     `json:"customer,omitempty"`
	Test       bool       `json:"test"`
	Last4      string     `json:"last4"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	ReplacedBy string     `json:"replaced_by,omitempty"`
}

func tellKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t message.Type, k APIKey) error {
	return message.Emit(ctx, tx, tenant, t, toldKey{
		id.APIKey.Format(k.ID), k.Kind, k.Name, id.Customer.Format(k.Customer), k.Test, k.Last4, k.ExpiresAt, k.RevokedAt, id.APIKey.Format(k.ReplacedBy),
	})
}

// toldBench is the data of messages about the health of a provider key. Model is
// absent where all of them are meant, until where only a check ends it.
type toldBench struct {
	ProviderKey string             `json:"provider_key"`
	Model       string             `json:"model,omitempty"`
	Source      limits.BenchSource `json:"source"`
	Reason      limits.BenchReason `json:"reason"`
	Status      int                `json:"status,omitempty"`
	Since       time.Time          `json:"since"`
	Until       *time.Time         `json:"until"`
}

func tellBench(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t message.Type, h KeyHealth, b limits.Bench) error {
	return message.Emit(ctx, tx, tenant, t, toldBench{
		id.ProviderKey.Format(h.Key), h.Model, b.Source, b.Reason, b.Status, b.Since, orNull(b.Until),
	})
}

// tellChange tells what became of a key's rest: it cools where it did not at the
// instant, or it recovered.
func tellChange(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, h KeyHealth, was limits.Bench, at time.Time) error {
	switch {
	case h.Bench.Runs(at) && !was.Runs(at):
		return tellBench(ctx, tx, tenant, message.ProviderKeyCooling, h, h.Bench)
	case was.Source != "" && h.Bench.Source == "":
		return tellBench(ctx, tx, tenant, message.ProviderKeyRecovered, h, was)
	}
	return nil
}
