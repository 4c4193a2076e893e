package limits

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"weir/internal/fault"
	"weir/internal/id"
)

// The scripts are put together from parts. What the usual call needs comes first,
// and answers it before the functions that others need are made.
var (
	//go:embed head.lua
	luaHead string
	//go:embed value.lua
	luaValue string
	//go:embed bucket.lua
	luaBucket string
	//go:embed group.lua
	luaGroup string
	//go:embed swift_reserve.lua
	luaSwiftReserve string
	//go:embed swift_settle.lua
	luaSwiftSettle string
	//go:embed record.lua
	luaRecord string
	//go:embed ledgers.lua
	luaLedgers string
	//go:embed charges.lua
	luaCharges string
	//go:embed decide.lua
	luaDecide string
	//go:embed outcome.lua
	luaOutcome string

	luaReserving = luaHead + luaValue + luaBucket + luaSwiftReserve + luaGroup + luaRecord + luaLedgers + luaCharges + luaDecide
	luaFollowing = luaHead + luaValue + luaBucket + luaSwiftSettle + luaGroup + luaRecord + luaLedgers + luaCharges + luaOutcome
)

// RedisOptions make a Redis. Only Client is required.
type RedisOptions struct {
	Client rueidis.Client
	Prefix string           // of every key; empty: "weir:"
	Now    func() time.Time // nil: Redis's clock decides, as it must where several processes share it
	After  After            // nil: timers of the real clock
	Books  SharedBooks      // nil: there is nothing to load

	// Unclean says that the state of scopes older than Started was lost at
	// LastAlive: their buckets and sliding windows start spent.
	Unclean            bool
	Started, LastAlive time.Time

	Owner string // of this process, over its lives: it alone is told what it reserved has run out

	// While Redis does not answer within Budget, the process decides by itself, as
	// each limit's Outage says; of what was left it grants the share of one of
	// Processes, or of as many as Alive last said. 0: such calls fail.
	Budget    time.Duration
	Processes int
	Log       *slog.Logger // nil: slog.Default()

	MaxLedgers int // scopes, and names within limits, of a tenant that have ledgers; 0: a million
	MaxNames   int // ledgers of one limit for each model or end user; 0: a hundred thousand
	MaxOpen    int // reservations of a tenant that are open; 0: two hundred thousand
}

// SharedBooks are Books that can tell later what a reading of them held: several
// processes add to one ledger what its reading lacked.
type SharedBooks interface {
	// Read is CapTotals of Books, with what stands for the instant of the reading.
	Read(ctx context.Context, tenant uuid.UUID, keys []WindowKey) (totals []Total, reading string, err error)
	// Held are those of the calls whose events a reading held.
	Held(ctx context.Context, tenant uuid.UUID, reading string, calls []uuid.UUID) ([]uuid.UUID, error)
}

// Redis is the limits engine of any number of processes. Every operation is one
// atomic script on the tenant's hash slot. Its methods are safe for concurrent
// use.
type Redis struct {
	client          atomic.Pointer[rueidis.Client] // nil: not connected yet
	dial            func() (rueidis.Client, error)
	decide, outcome *rueidis.Lua
	prefix, owner   string
	clock           func() time.Time
	after           After
	books           SharedBooks
	killed          *killed

	maxNames, maxOpen int

	away away

	mu      sync.Mutex
	tenants map[uuid.UUID]*farTenant
	known   map[string]*Set // by its definitions: of reservations that others made
}

// farTenant is what a process knows of a tenant.
type farTenant struct {
	key     string                        // of its head; other keys begin with it
	loading chan struct{}                 // held by the one call that loads windows
	due     int64                         // µs: when there may be something to hand out; 0: there is nothing
	seen    atomic.Int64                  // µs: the latest instant that it was told
	born    atomic.Int64                  // ms: since when Redis has lost nothing of it
	lost    atomic.Pointer[chan struct{}] // it has: closed when this process has told it again
	losses  atomic.Int64                  // so many times it was noticed
	mended  atomic.Int64                  // how many of them are made good
	mending sync.Mutex                    // held by who takes calls back

	handing sync.Mutex
	heard   []uuid.UUID // ran out, and was handed out: Redis is told so with the next question

	line    sync.Mutex
	waiting []*waiter // calls of this process that wait for room, first come first
}

// NewRedis returns an engine on a server that need not be there yet.
func NewRedis(o RedisOptions) *Redis {
	r := &Redis{
		prefix: o.Prefix, owner: o.Owner, clock: o.Now, after: o.After, books: o.Books,
		decide: bounded(luaReserving, o.MaxLedgers), outcome: bounded(luaFollowing, o.MaxLedgers),
		maxNames: orDefault(o.MaxNames, 100_000), maxOpen: orDefault(o.MaxOpen, 200_000),
		tenants: map[uuid.UUID]*farTenant{}, known: map[string]*Set{},
	}
	if o.Client != nil {
		r.client.Store(&o.Client)
	}
	r.away.begin(o)
	if r.after == nil {
		r.after = realTimer
	}
	if r.prefix == "" {
		r.prefix = "weir:"
	}
	if o.Unclean {
		r.killed = &killed{o.Started, o.Started}
		if !o.LastAlive.IsZero() && o.LastAlive.Before(o.Started) {
			r.killed.LastAlive = o.LastAlive
		}
	}
	return r
}

// bounded is a script with a bound on the groups of a tenant.
func bounded(text string, mostGroups int) *rueidis.Lua {
	return rueidis.NewLuaScript(fmt.Sprintf("local most_groups = %d\n", orDefault(mostGroups, 1_000_000)) + text)
}

// now is the instant that calendar windows are worked out for; where it is not
// the one that decides, the script says so.
func (r *Redis) now() time.Time {
	if r.clock != nil {
		return r.clock()
	}
	return time.Now()
}

func (r *Redis) tenant(u uuid.UUID) *farTenant {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenants[u]
	if t == nil {
		t = &farTenant{key: r.prefix + "{" + id.Tenant.Format(u) + "}", loading: make(chan struct{}, 1)}
		r.tenants[u] = t
	}
	return t
}

// saw notes an instant (µs).
func (t *farTenant) saw(micros int64) {
	for was := t.seen.Load(); was < micros; was = t.seen.Load() {
		if t.seen.CompareAndSwap(was, micros) {
			return
		}
	}
}

// owes notes that something of the tenant runs out at an instant (µs).
func (r *Redis) owes(t *farTenant, due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.due == 0 || due < t.due {
		t.due = due
	}
}

// The statuses that scripts answer with.
const (
	farDone = iota
	farNeeds
	farAgain
	farExists
	farCrowded
	farUnknown
	farSettled
	farExpired
	farTooLong
	farMoved
	farSwift   // done, in the usual way
	farRefused // refused, in the usual way
)

// asked is one run of a script.
type asked struct {
	tenant *farTenant
	script *rueidis.Lua
	keys   []string
	what   int
	body   packer   // what the script at hand is told
	more   []string // further arguments
	ledger func(suffix, field string) string
}

// answer is what a script answered, up to its status and instant.
type answer struct {
	unpacker
	status int64
	at     instant
}

// run runs a script until it has the windows that it needs. ask is called with
// the instant to work windows out for, again if that was another.
func (r *Redis) run(ctx context.Context, tenantID uuid.UUID, t *farTenant, ask func(wallMS int64) asked) (answer, error) {
	wallMS := r.now().UnixMilli()
	var windows []loaded
	holding := false
	defer func() {
		if holding {
			<-t.loading
		}
	}()
	for range 10 {
		asks := ask(wallMS)
		a, err := r.exec(ctx, asks, windows, r.at())
		if err != nil || a.status != farNeeds {
			return a, err
		}
		wallMS = a.at.wallMS
		stale := a.flag()
		needs := a.needs()
		if a.err != nil {
			return a, out(a.err)
		}
		switch {
		case stale:
			continue
		case !holding:
			select {
			case t.loading <- struct{}{}:
				holding = true
			case <-ctx.Done():
				return a, out(ctx.Err())
			}
		default:
			if windows, err = r.load(ctx, tenantID, needs, asks.ledger); err != nil {
				return a, err
			}
		}
	}
	return answer{}, out(errors.New("limits: the clocks of Redis and this process run away from each other"))
}

// at is the instant to be told, in µs; 0 leaves it to Redis.
func (r *Redis) at() int64 {
	if r.clock != nil {
		return r.clock().UnixMicro()
	}
	return 0
}

func (r *Redis) exec(ctx context.Context, a asked, windows []loaded, micros int64) (answer, error) {
	p := packer{make([]byte, 0, len(a.body.b)+24)}
	var lastAlive int64
	if r.killed != nil {
		lastAlive = r.killed.LastAlive.UnixMilli()
	}
	p.ints(micros, lastAlive)
	p.flag(r.books != nil)
	p.flag(len(windows) > 0)
	p.byte(a.what)
	p.b = append(p.b, a.body.b...)
	args := append([]string{rueidis.BinaryString(p.b)}, a.more...)
	if len(windows) > 0 {
		args = append(args, packWindows(windows))
	}
	s, err := r.send(ctx, a, args)
	if err != nil {
		return answer{}, err
	}
	got := answer{unpacker: unpacker{s: s}}
	got.status = int64(got.byte())
	got.at.micros, got.at.wallMS = got.int(), got.int()
	got.at.ms, got.at.behind = got.at.wallMS, got.at.wallMS-floorDiv(got.at.micros, 1000)
	if got.err != nil {
		return got, out(got.err)
	}
	a.tenant.saw(got.at.wallMS*1000 + 999)
	return got, nil
}

// DialRedis is NewRedis on the server, or cluster, that a URL names (redis://,
// rediss://, unix://). It need not be there yet; Run connects. An error is a URL
// that cannot be read, which it does not repeat.
func DialRedis(url string, o RedisOptions) (*Redis, error) {
	to, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, errors.New("REDIS_URL: not a redis://, rediss:// or unix:// address")
	}
	to.DisableCache, to.DisableRetry = true, true
	to.Dialer.Timeout = time.Second
	r := NewRedis(o)
	r.dial = func() (rueidis.Client, error) { return rueidis.NewClient(to) }
	r.connect()
	return r, nil
}

// connect connects if it has to; it tells whether there is a connection.
func (r *Redis) connect() bool {
	if r.client.Load() != nil {
		return true
	}
	c, err := r.dial()
	if err != nil {
		return false
	}
	r.client.Store(&c)
	return true
}

// refusal is what a status other than done comes to.
func refusal(status int64) error {
	switch status {
	case farExists:
		return fault.New(fault.Conflict, "reservation_exists", "This id is reserved already.")
	case farCrowded:
		return out(errCrowded)
	case farUnknown:
		return fault.New(fault.NotFound, "reservation_not_found", "There is no such reservation.")
	case farSettled:
		return fault.New(fault.Conflict, "reservation_settled", "This reservation is settled already.")
	case farExpired:
		return fault.New(fault.Conflict, "reservation_expired", "This reservation has expired.")
	case farTooLong:
		return checkTTL(MaxTTL + 1)
	case farMoved:
		return fault.New(fault.Conflict, "reservation_moved", "This attempt is not the one that runs, or it ended with other figures.")
	}
	return out(fmt.Errorf("limits: status %d of a script", status))
}
