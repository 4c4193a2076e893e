package limits

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// Processes say in Redis when they last had nothing to tell of an outage. One
// that comes back knows by that when all others have told what they admitted, and
// does not go beyond its own share before.

const (
	// tellsEvery is every how many ticks of probeEvery a process says so.
	tellsEvery = 5
	// waitsFor is how long a process that is not heard of is waited for: it may be
	// gone.
	waitsFor = 5 * time.Second
)

// presence sets when a process (ARGV 1, empty: none) has nothing to tell, and
// answers with the time and what all processes have set within the last hour.
var presence = rueidis.NewLuaScript(`
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000000 + t[2])
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], now)
  redis.call('PEXPIRE', KEYS[1], 86400000)
end
local all, list = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  if tonumber(now) - tonumber(all[i + 1]) > 3600000000 then
    redis.call('HDEL', KEYS[1], all[i])
  else
    list[#list + 1] = all[i + 1]
  end
end
list[#list + 1] = now
return list`)

// present says that this process has nothing to tell, and ends its bound where
// all others have said the same.
func (r *Redis) present(ctx context.Context) {
	if r.away.budget == 0 || r.owner == "" {
		return
	}
	seen, _, ok := r.presence(ctx, r.owner)
	if ok {
		r.away.unbind(seen, r.now())
	}
}

// clockThere is Redis's time, in µs.
func (r *Redis) clockThere(ctx context.Context) (micros int64, ok bool) {
	_, micros, ok = r.presence(ctx, "")
	return micros, ok
}

func (r *Redis) presence(ctx context.Context, owner string) (seen []int64, now int64, ok bool) {
	if !r.connect() {
		return nil, 0, false
	}
	client := *r.client.Load()
	var list []string
	_, err := within(ctx, max(r.away.budget, probeEvery), func(ctx context.Context) (string, error) {
		got, err := presence.Exec(ctx, client, []string{r.prefix + "present"}, []string{owner}).AsStrSlice()
		list = got
		return "", err
	})
	if err != nil || len(list) == 0 {
		return nil, 0, false
	}
	for _, at := range list[:len(list)-1] {
		n, _ := strconv.ParseInt(at, 10, 64) // the script's own
		seen = append(seen, n)
	}
	now, err = strconv.ParseInt(list[len(list)-1], 10, 64)
	return seen, now, err == nil
}

// unbind ends the bound of a process that is back when as many as share have said
// since that they have nothing to tell, or the others are waited for no more.
func (w *away) unbind(seen []int64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		return
	}
	var told int64
	for _, at := range seen {
		if at >= w.bound.backSince {
			told++
		}
	}
	if told >= w.processes() || now.Sub(w.bound.backAt) >= waitsFor {
		w.bound = nil
	}
}

func (w *away) bounding() *alone {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound
}

// bounded decides a call in Redis that fits into this process's share too.
func (a *alone) bounded(ctx context.Context, req *Request) (Decision, error) {
	if req.outage() == OutageShare && a.r.now().Sub(a.since) < shareFor {
		mine := a.request(req)
		mine.Forget, mine.TTL, mine.ID, mine.Once = true, time.Second, uuid.Nil, Once{}
		d, err := a.local.Reserve(ctx, mine)
		if err != nil {
			return d, err
		}
		if !d.Admitted {
			return a.answer(req, d), nil
		}
		id := d.Reservation.ID
		d, err = a.r.reserveThere(ctx, req)
		if err != nil || !d.Admitted {
			_, _ = a.local.Cancel(ctx, req.Tenant, id)
		}
		return d, err
	}
	return a.r.reserveThere(ctx, req)
}
