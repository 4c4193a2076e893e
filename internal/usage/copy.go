package usage

import (
	"context"
	"encoding/binary"
	"io"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// copyEvents stores events of which none is stored, in the order of the items: as
// insertEvents does in half the time, since it neither looks for each id first nor
// makes rows of arrays. One that is stored after all, or a partition that is not
// there, is an error of the database.
//
// It goes into the partitions themselves, whose rows no policy guards: COPY knows
// none, and the worker's lets everything through.
func copyEvents(ctx context.Context, tx pgx.Tx, items []*item) error {
	for len(items) > 0 {
		d, n := partition(items[0].event.ID), 1
		for n < len(items) && partition(items[n].event.ID).Equal(d) {
			n++
		}
		if _, err := tx.Conn().PgConn().CopyFrom(ctx, newCopied(items[:n]), copyInto(d)); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// copyNew stores the events by COPY where nothing says that one of them is stored
// or may have been dropped, else as insertNew does.
func copyNew(ctx context.Context, tx pgx.Tx, b batch) (fresh []*Event, refused []letter, err error) {
	expected, err := allNew(ctx, tx, b)
	if err != nil {
		return nil, nil, err
	}
	if !expected {
		return insertNew(ctx, tx, b)
	}
	for _, it := range b.items {
		fresh = append(fresh, &it.event)
	}
	return fresh, nil, copyEvents(ctx, tx, b.items)
}

// allNew tells whether the events may be taken for new, and stored as they are:
// none of the numbers is committed, no day is one of which events went or can go
// meanwhile (the least days that are kept are thirty), and no customer was erased.
func allNew(ctx context.Context, tx pgx.Tx, b batch) (expected bool, err error) {
	if len(b.items) == 0 || b.replays != uuid.Nil {
		return false, nil
	}
	var instances [][16]byte
	var shards []int32
	var first, last []int64
	for _, r := range b.runs() {
		if r.first == 0 && len(r.items) > 0 {
			return false, nil
		}
		instances, shards = append(instances, r.instance), append(shards, int32(r.shard))
		first, last = append(first, r.first), append(last, r.last)
	}
	err = tx.QueryRow(ctx, `
		select $1::date > current_date - 20 and $1 > (select gone_before from usage_retention)
		   and not exists (select from usage_gone where gone_before >= $1)
		   and not exists (select from usage_erasures where customer_id = any ($6::uuid[]))
		   and not exists (
		       select from unnest($2::uuid[], $3::integer[], $4::bigint[], $5::bigint[]) as r (instance_id, shard, first, last)
		       join usage_marks m using (instance_id, shard)
		       where m.committed && int8range(r.first, r.last, '[]'))`,
		partition(b.items[0].event.ID), instances, shards, first, last, customersOf(b.items)).Scan(&expected)
	return expected, err
}

// customersOf are the customers of events, each once.
func customersOf(items []*item) (customers [][16]byte) {
	seen := make(map[uuid.UUID]bool)
	for _, it := range items {
		if c := it.event.Customer; !seen[c] {
			seen[c] = true
			customers = append(customers, c)
		}
	}
	return customers
}

func copyInto(d time.Time) string {
	return "copy usage_events_" + d.Format("20060102") + ` (
		tenant_id, day_utc, event_id, request_id, customer_id, subscription_id, plan_version_id, api_key_id, counter_id, provider_key_id,
		end_user, tags, model_asked, model_served, kind, started_at, ended_at, local_day, outcome,
		requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units,
		estimated, charge_pico, currency, cost_pico, cost_currency, test, corrects, detail, body_hash, instance_id, shard, number)
		from stdin with (format binary)`
}

// copiedColumns are how many columns a row has.
const copiedColumns = 39

// copied are the rows of events in the binary form of COPY:
// https://www.postgresql.org/docs/current/sql-copy.html, with values in the binary
// forms of their types. It is read once, and makes a row when it comes to it.
type copied struct {
	items   []*item // to come
	ended   bool
	b       []byte // what is made
	read    int    // how far that was read
	decimal []byte // of the last number
}

func newCopied(items []*item) *copied {
	return &copied{items: items, b: append(make([]byte, 0, 4<<10), "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)}
}

// Read implements io.Reader.
func (c *copied) Read(to []byte) (n int, err error) {
	for n < len(to) {
		if c.read == len(c.b) {
			if err := c.make(); err != nil {
				return n, err
			}
		}
		some := copy(to[n:], c.b[c.read:])
		n, c.read = n+some, c.read+some
	}
	return n, nil
}

// make makes the next row, or the end; after that it is io.EOF.
func (c *copied) make() error {
	c.b, c.read = c.b[:0], 0
	switch {
	case len(c.items) > 0:
		it := c.items[0]
		c.items = c.items[1:]
		return c.add(it)
	case c.ended:
		return io.EOF
	}
	c.ended = true
	c.b = binary.BigEndian.AppendUint16(c.b, 0xffff)
	return nil
}

func (c *copied) add(it *item) error {
	e := &it.event
	c.b = binary.BigEndian.AppendUint16(c.b, copiedColumns)
	c.id(e.Tenant)
	c.date(partition(e.ID))
	c.id(e.ID)
	c.id(e.RequestID)
	for _, id := range [...]uuid.UUID{e.Customer, e.Subscription, e.PlanVersion, e.Key, e.Counter, e.ProviderKey} {
		c.idOrNull(id)
	}
	c.textOrNull(e.EndUser)
	if err := c.tags(e.Tags); err != nil {
		return err
	}
	c.text(e.ModelAsked)
	c.text(e.ModelServed)
	c.text(e.Kind)
	c.instant(e.StartedAt)
	c.instant(e.EndedAt)
	c.instant(e.LocalDay)
	c.text(string(e.Outcome))
	for _, n := range counts(e) {
		c.whole(n)
	}
	c.text(e.Estimated)
	c.money(e.Charge.Big())
	c.text(e.Currency)
	c.cost(e)
	c.textOrNull(e.CostCurrency)
	c.flag(e.Test)
	c.idOrNull(e.Corrects)
	c.json(func(b []byte) []byte {
		return appendDetail(b, &detail{e.Stream, e.SelfReported, e.Estimate, e.Guess, e.Attempts, e.Charges, e.Refusal, e.Prices, e.Unsettled, e.Settled})
	})
	c.bytes(it.hash[:])
	c.id(e.Instance)
	c.b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(c.b, 4), uint32(e.Shard))
	c.whole(e.Number)
	return nil
}

// begun starts a value; done states its length, which begins at that place.
func (c *copied) begun() int {
	c.b = append(c.b, 0, 0, 0, 0)
	return len(c.b)
}

func (c *copied) done(at int) { binary.BigEndian.PutUint32(c.b[at-4:], uint32(len(c.b)-at)) }

func (c *copied) null() { c.b = append(c.b, 0xff, 0xff, 0xff, 0xff) }

func (c *copied) bytes(v []byte) {
	c.b = append(binary.BigEndian.AppendUint32(c.b, uint32(len(v))), v...)
}

func (c *copied) text(s string) {
	c.b = append(binary.BigEndian.AppendUint32(c.b, uint32(len(s))), s...)
}

func (c *copied) textOrNull(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

func (c *copied) id(id uuid.UUID) { c.bytes(id[:]) }

func (c *copied) idOrNull(id uuid.UUID) {
	if id == uuid.Nil {
		c.null()
		return
	}
	c.id(id)
}

func (c *copied) whole(n int64) {
	c.b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(c.b, 8), uint64(n))
}

func (c *copied) flag(v bool) { c.b = append(binary.BigEndian.AppendUint32(c.b, 1), byte(rank(v))) }

// jsonbVersion goes before the text of a jsonb.
const jsonbVersion = 1

// Times are counted from the first of January 2000.
var millennium = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *copied) instant(t time.Time) { c.whole(t.UnixMicro() - millennium.UnixMicro()) }

func (c *copied) date(d time.Time) {
	c.b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(c.b, 4), uint32(d.Sub(millennium)/day))
}

// json is the text of one.
func (c *copied) json(appended func([]byte) []byte) {
	at := c.begun()
	c.b = appended(c.b)
	c.done(at)
}

func (c *copied) tags(tags map[string]string) error {
	if len(tags) == 0 {
		c.null()
		return nil
	}
	b, err := encode(tags)
	c.bytes(append([]byte{jsonbVersion}, b...))
	return err
}

func (c *copied) cost(e *Event) {
	if e.Cost == nil {
		c.null()
		return
	}
	c.money(e.Cost.Big())
}

// money is a numeric without a fraction: digits of base 10,000, the first one
// first, and the power of the first.
func (c *copied) money(n *big.Int) {
	const negative = 0x4000
	c.decimal = n.Append(c.decimal[:0], 10)
	digits, sign := c.decimal, uint16(0)
	if digits[0] == '-' {
		digits, sign = digits[1:], negative
	}
	groups := (len(digits) + 3) / 4
	at, be := c.begun(), binary.BigEndian
	c.b = be.AppendUint16(c.b, uint16(groups))
	c.b = be.AppendUint16(c.b, uint16(groups-1))
	c.b = be.AppendUint16(c.b, sign)
	c.b = be.AppendUint16(c.b, 0)
	for len(digits) > 0 {
		cut, group := (len(digits)-1)%4+1, uint16(0)
		for _, d := range digits[:cut] {
			group = group*10 + uint16(d-'0')
		}
		c.b, digits = be.AppendUint16(c.b, group), digits[cut:]
	}
	c.done(at)
}
