package notify

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// State is where a delivery stands.
type State string

// The states of a delivery.
const (
	Waiting State = "waiting" // for its first try or the next
	Taken   State = "taken"   // a 2xx
	Dead    State = "dead"    // every try failed
	Held    State = "held"    // the endpoint is or was off
)

// Message is what was told.
type Message struct {
	ID         uuid.UUID
	Type       message.Type
	Body       string // the bytes that every try sends
	CreatedAt  time.Time
	Deliveries []Delivery
}

// Delivery is a message on its way to one endpoint.
type Delivery struct {
	Endpoint uuid.UUID
	URL      string
	State    State
	Tries    int       // since it was first sent, or replayed
	NextAt   time.Time // of a waiting one
	LastAt   *time.Time
	Status   int // of the last answer; 0: there was none
	MS       int
	Error    string    // why there was no answer
	Attempts []Attempt // of one message that is read by itself, oldest first
}

// Attempt is one try. Of an answer only its status is kept.
type Attempt struct {
	At     time.Time
	Status int
	MS     int
	Error  string
}

// MessageFilter narrows a list of messages; zero fields do not.
type MessageFilter struct {
	Endpoint uuid.UUID
	Type     message.Type
	State    State  // of any of its deliveries, or of that to Endpoint
	Failing  bool   // waiting after a failed try, or dead
	Text     string // in the body
}

// Messages lists what was told, newest first, after an id, with its deliveries.
func (s *Service) Messages(ctx context.Context, tenant uuid.UUID, f MessageFilter, after uuid.UUID, limit int) (tenants.Page[Message], error) {
	var list []Message
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select m.message_id, m.type, m.body, m.created_at
			from webhook_messages m
			where m.tenant_id = $1 and m.message_id < $2 and ($3 = '' or m.type = $3) and ($4 = '' or m.body like '%' || $4 || '%')
			  and exists (
			      select from webhook_deliveries d
			      where d.tenant_id = $1 and d.message_id = m.message_id and ($5::uuid is null or d.endpoint_id = $5)
			        and ($6 = '' or d.state = $6) and (not $7 or d.state = 'dead' or d.state = 'waiting' and d.tries > 0))
			order by m.message_id desc limit $8`,
			tenant, tenants.After(after), string(f.Type), escapeLike(f.Text), optional(f.Endpoint), string(f.State), f.Failing, limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanMessage); err != nil {
			return err
		}
		return deliveries(ctx, tx, tenant, list)
	})
	return tenants.PageOf(list, limit, func(m Message) uuid.UUID { return m.ID }), err
}

func scanMessage(row pgx.CollectableRow) (m Message, err error) {
	err = row.Scan(&m.ID, &m.Type, &m.Body, &m.CreatedAt)
	return m, err
}

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func optional(u uuid.UUID) *uuid.UUID {
	if u == uuid.Nil {
		return nil
	}
	return &u
}

// deliveries adds to each message where it went.
func deliveries(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Message) error {
	at := make(map[uuid.UUID]int, len(list))
	ids := make([]uuid.UUID, len(list))
	for i, m := range list {
		at[m.ID], ids[i] = i, m.ID
	}
	rows, err := tx.Query(ctx, `
		select d.message_id, d.endpoint_id, e.url, d.state, d.tries, d.next_at, d.last_at, d.last_status, d.last_ms, d.last_error
		from webhook_deliveries d
		join webhook_endpoints e on e.tenant_id = d.tenant_id and e.endpoint_id = d.endpoint_id
		where d.tenant_id = $1 and d.message_id = any($2)
		order by d.message_id, d.endpoint_id`, tenant, ids)
	if err != nil {
		return err
	}
	var of uuid.UUID
	var d Delivery
	_, err = pgx.ForEachRow(rows, []any{&of, &d.Endpoint, &d.URL, &d.State, &d.Tries, &d.NextAt, &d.LastAt, &d.Status, &d.MS, &d.Error}, func() error {
		m := &list[at[of]]
		m.Deliveries = append(m.Deliveries, d)
		return nil
	})
	return err
}

// Message reads one message with every try.
func (s *Service) Message(ctx context.Context, tenant, msg uuid.UUID) (Message, error) {
	var m Message
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		m, err = readMessage(ctx, tx, tenant, msg)
		return err
	})
	return m, err
}

func readMessage(ctx context.Context, tx pgx.Tx, tenant, msg uuid.UUID) (Message, error) {
	rows, err := tx.Query(ctx, `
		select message_id, type, body, created_at from webhook_messages
		where tenant_id = $1 and message_id = $2`, tenant, msg)
	if err != nil {
		return Message{}, err
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanMessage)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, tenants.NotFound("webhook message")
	}
	if err != nil {
		return m, err
	}
	list := []Message{m}
	if err := deliveries(ctx, tx, tenant, list); err != nil {
		return m, err
	}
	return list[0], attempts(ctx, tx, tenant, list[0])
}

func attempts(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, m Message) error {
	rows, err := tx.Query(ctx, `
		select endpoint_id, at, status, ms, error from webhook_attempts
		where tenant_id = $1 and message_id = $2 and endpoint_id = any(select endpoint_id from webhook_deliveries where tenant_id = $1 and message_id = $2)
		order by endpoint_id, attempt_id`, tenant, m.ID)
	if err != nil {
		return err
	}
	var of uuid.UUID
	var a Attempt
	_, err = pgx.ForEachRow(rows, []any{&of, &a.At, &a.Status, &a.MS, &a.Error}, func() error {
		for i := range m.Deliveries {
			if d := &m.Deliveries[i]; d.Endpoint == of {
				d.Attempts = append(d.Attempts, a)
			}
		}
		return nil
	})
	return err
}

// Test sends a message of type webhook.test to one endpoint. An endpoint that is
// off is a Conflict endpoint_off.
func (s *Service) Test(ctx context.Context, tenant, endpoint uuid.UUID) (Message, error) {
	var m Message
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		e, err := readEndpoint(ctx, tx, tenant, endpoint, "")
		if err != nil {
			return err
		}
		if e.DisabledAt != nil {
			return endpointOff()
		}
		msg, err := message.EmitTo(ctx, tx, tenant, endpoint, message.WebhookTest, testData{id.Endpoint.Format(endpoint)})
		if err != nil {
			return err
		}
		m, err = readMessage(ctx, tx, tenant, msg)
		return err
	})
	return m, err
}

type testData struct {
	Endpoint string `json:"endpoint"`
}

func endpointOff() error {
	return fault.New(fault.Conflict, "endpoint_off", "This endpoint is off. Switch it on first.")
}
