package exports

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/usage"
)

// pageRows is how many calls are read at once.
const pageRows = 1000

// writeRequests writes the log, newest first: a row of each call, of each
// correction, and of what the refusals of a second beyond the first ones add up
// to.
func (f *file) writeRequests(ctx context.Context) error {
	if err := f.sheet.head(f.requestHead()); err != nil {
		return err
	}
	q := usage.RequestFilter{From: f.what.From, To: f.what.To, Filter: f.what.Filter, Limit: pageRows}
	span := q.To.Sub(q.From).Seconds()
	for {
		page, err := f.reports.Requests(ctx, f.tenant, q)
		if err != nil {
			return err
		}
		if err := f.learnOf(ctx, page); err != nil {
			return err
		}
		for _, e := range page {
			row, err := f.requestRow(e)
			if err != nil {
				return err
			}
			if err := f.row(row); err != nil {
				return err
			}
		}
		if len(page) < pageRows {
			return nil
		}
		q.After = usage.CursorOf(page[len(page)-1])
		if err := f.keepFull(ctx, f.what.To.Sub(q.After.StartedAt).Seconds()/span); err != nil {
			return err
		}
	}
}

// learnOf reads the names that rows show.
func (f *file) learnOf(ctx context.Context, page []usage.Event) error {
	var ids []uuid.UUID
	for _, e := range page {
		if f.what.Sight.Customers {
			ids = append(ids, e.Customer)
		}
		if f.what.Sight.Keys {
			ids = append(ids, e.Counter)
		}
		if f.what.Sight.ProviderKeys {
			ids = append(ids, e.ProviderKey)
		}
	}
	return f.learn(ctx, ids)
}

func (f *file) requestHead() []string {
	head := []string{"started_at", "ended_at", "request", "event", "kind"}
	if f.what.Sight.Customers {
		head = append(head, "customer", "customer_name")
	}
	if f.what.Sight.Keys {
		head = append(head, "api_key", "api_key_name")
	}
	if f.what.Sight.ProviderKeys {
		head = append(head, "provider_key", "provider_key_name")
	}
	head = append(head, "model", "model_served", "outcome", "requests", "refused",
		"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "units",
		"estimated", "end_user", "tags", "test", "corrects")
	if f.what.Sight.Charges {
		head = append(head, "billed", "currency")
	}
	if f.what.Sight.Costs {
		head = append(head, "provider_cost", "provider_cost_currency")
	}
	return head
}

func (f *file) requestRow(e usage.Event) ([]any, error) {
	row := []any{f.at(e.StartedAt), f.at(e.EndedAt), id.Request.Format(e.RequestID), id.Event.Format(e.ID), e.Kind}
	if f.what.Sight.Customers {
		row = append(row, id.Customer.Format(e.Customer), f.names[e.Customer].Name)
	}
	if f.what.Sight.Keys {
		row = append(row, id.APIKey.Format(e.Key), f.names[e.Counter].Name)
	}
	if f.what.Sight.ProviderKeys {
		row = append(row, id.ProviderKey.Format(e.ProviderKey), f.names[e.ProviderKey].Name)
	}
	tags := ""
	if len(e.Tags) > 0 {
		b, err := json.Marshal(e.Tags)
		if err != nil {
			return nil, err
		}
		tags = string(b)
	}
	t := e.Tokens
	row = append(row, e.ModelAsked, e.ModelServed, string(e.Outcome), e.Requests, e.Refused,
		t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, e.Units,
		e.Estimated, e.EndUser, tags, e.Test, id.Event.Format(e.Corrects))
	if f.what.Sight.Charges {
		row = append(row, e.Charge.Decimal(), e.Currency)
	}
	if f.what.Sight.Costs {
		cost, currency := any(nil), any(nil)
		if e.Cost != nil {
			cost, currency = e.Cost.Decimal(), e.CostCurrency
		}
		row = append(row, cost, currency)
	}
	return row, nil
}
