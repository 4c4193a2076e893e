package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// Pipeline is the way of events into the books, as the operator of an installation
// sees it. It belongs to no tenant: who may look is the surface's to decide. It is
// safe for concurrent use.
type Pipeline struct{ db *postgres.DB }

// NewPipeline makes a view of it; db is a pool of the app role.
func NewPipeline(db *postgres.DB) *Pipeline { return &Pipeline{db} }

// PipelineState is how far the books are.
type PipelineState struct {
	AsOf      time.Time
	Instances []InstanceState // those that run first, then by when they were last seen
	Missing   int64           // events that were numbered and are not in the books
	Lag       time.Duration   // since the oldest instant at which something that still runs was complete; 0: it is
	Letters   map[string]int  // dead letters that stand, by reason
	Conflicts int             // of them
	Counted   int             // dead letters that were counted since
	Again     Again           // of all instances ever
	Committed int64           // numbers of all instances ever
}

// Again is what came to the workers once more, and was dropped.
type Again struct {
	Messages int64 // whose numbers were all committed before
	Events   int64 // that were stored before
}

// InstanceState is one process that ends calls, or did.
type InstanceState struct {
	ID                 uuid.UUID
	Host               string
	StartedAt, SeenAt  time.Time
	OldestOpen         *time.Time // since when a call of it has been open
	FreshAt            *time.Time // every call that ended before is in the books
	StoppedAt, Retired *time.Time
	Shards             []ShardState // that have numbers
	Missing            int64
	AdoptedBy          *uuid.UUID // who brings its spool into the books since AdoptedAt
	AdoptedAt          *time.Time
	Again              Again
}

// ShardState is how far the events of one instance and shard are in the books.
type ShardState struct {
	Shard            int
	Given, Committed int64 // the last number given; the last one up to which all are in the books
	Missing          int64 // of those given
}

// SilentAfter is how long an instance may say nothing before it counts as gone.
const SilentAfter = time.Minute

// Live tells whether an instance still says that it runs.
func (i InstanceState) Live(now time.Time) bool {
	return i.StoppedAt == nil && now.Sub(i.SeenAt) < SilentAfter
}

// Over tells whether nothing is to come of an instance.
func (i InstanceState) Over() bool { return i.StoppedAt != nil || i.Retired != nil }

// mostInstances are those that are shown.
const mostInstances = 200

// State reads how far the books are, at one instant.
func (p *Pipeline) State(ctx context.Context) (s PipelineState, err error) {
	err = p.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		s = PipelineState{Letters: map[string]int{}}
		if err := tx.QueryRow(ctx, "select now()").Scan(&s.AsOf); err != nil {
			return err
		}
		if s.Instances, err = readInstances(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `
			select coalesce(sum(messages_again), 0)::bigint, coalesce(sum(events_again), 0)::bigint,
			       coalesce(sum((select sum(upper(r) - lower(r)) from unnest(committed) r)), 0)::bigint
			from usage_marks`).Scan(&s.Again.Messages, &s.Again.Events, &s.Committed); err != nil {
			return err
		}
		return s.readLetters(ctx, tx)
	})
	for _, i := range s.Instances {
		if i.Over() {
			continue
		}
		s.Missing += i.Missing
		if i.Missing > 0 && i.FreshAt != nil {
			s.Lag = max(s.Lag, s.AsOf.Sub(*i.FreshAt))
		}
	}
	return s, err
}

func readInstances(ctx context.Context, tx pgx.Tx) ([]InstanceState, error) {
	rows, err := tx.Query(ctx, `
		select instance_id, host, started_at, seen_at, oldest_open, fresh_at, stopped_at, retired_at, numbers, adopted_by, adopted_at,
		       (select coalesce(sum(m.messages_again), 0)::bigint from usage_marks m where m.instance_id = instances.instance_id),
		       (select coalesce(sum(m.events_again), 0)::bigint from usage_marks m where m.instance_id = instances.instance_id)
		from instances
		order by stopped_at is not null or retired_at is not null, seen_at desc
		limit $1`, mostInstances)
	if err != nil {
		return nil, err
	}
	var list []InstanceState
	var i InstanceState
	var numbers []int64
	_, err = pgx.ForEachRow(rows, []any{&i.ID, &i.Host, &i.StartedAt, &i.SeenAt, &i.OldestOpen, &i.FreshAt, &i.StoppedAt, &i.Retired, &numbers, &i.AdoptedBy, &i.AdoptedAt, &i.Again.Messages, &i.Again.Events}, func() error {
		i.Shards = nil
		for shard, given := range numbers {
			i.Shards = append(i.Shards, ShardState{Shard: shard, Given: given, Missing: given})
		}
		list = append(list, i)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, readMarks(ctx, tx, list)
}

// readMarks fills in what is committed of instances.
func readMarks(ctx context.Context, tx pgx.Tx, list []InstanceState) error {
	at := map[uuid.UUID]*InstanceState{}
	var ids [][16]byte
	for k := range list {
		at[list[k].ID] = &list[k]
		ids = append(ids, list[k].ID)
	}
	rows, err := tx.Query(ctx, `
		select m.instance_id, m.shard, lower(r), upper(r) - 1
		from usage_marks m, unnest(m.committed) r
		where m.instance_id = any($1::uuid[])`, ids)
	if err != nil {
		return err
	}
	var instance uuid.UUID
	var shard int
	var first, last int64
	_, err = pgx.ForEachRow(rows, []any{&instance, &shard, &first, &last}, func() error {
		i := at[instance]
		for len(i.Shards) <= shard { // it has said less than the books have
			i.Shards = append(i.Shards, ShardState{Shard: len(i.Shards)})
		}
		s := &i.Shards[shard]
		s.Missing -= max(min(last, s.Given)-first+1, 0)
		if first <= 1 {
			s.Committed = last
		}
		return nil
	})
	for k := range list {
		for _, s := range list[k].Shards {
			list[k].Missing += s.Missing
		}
	}
	return err
}

func (s *PipelineState) readLetters(ctx context.Context, tx pgx.Tx) error {
	if err := tx.QueryRow(ctx, `select count(*) from dead_letters where replayed_at is not null`).Scan(&s.Counted); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select reason, count(*)::int from dead_letters where replayed_at is null group by reason`)
	if err != nil {
		return err
	}
	var reason string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&reason, &n}, func() error {
		s.Letters[reason] = n
		return nil
	})
	s.Conflicts = s.Letters[conflict]
	return err
}
