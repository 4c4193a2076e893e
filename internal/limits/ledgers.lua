-- Ledgers of the limits engine, as bucket.go, history.go, sliding.go, calendar.go
-- and gauge.go state them. Every number stays below 2^53, so doubles are exact.
--
-- KEYS[1] is the tenant's head; every other key is it and a suffix, so all are in
-- one slot. ARGV[1] is packed: the instant in microseconds (0: this server's
-- clock), then what the script at hand says.
local call, pack, unpack_, floor = redis.call, cmsgpack.pack, cmsgpack.unpack, math.floor
local A = unpack_(ARGV[1])
local P = KEYS[1]
local micros = A[1]
if micros == 0 then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
end

-- head: 1 the latest ms seen, 2 when the first open reservation runs out (µs, 0:
-- none), 3 open reservations, 4 since when nothing was lost (ms), 5 when the
-- lives of the queues were last renewed (ms)
local raw = call('MGET', unpack(KEYS))
local read = floor(micros / 1000)
local head = raw[1] and unpack_(raw[1]) or { read, 0, 0, read, 0 }
if head[1] < read then head[1] = read end
local latest = head[1]
local behind = latest - read

-- Groups are the ledgers of one scope (of one model, of one end user): fields,
-- and u, until when a reservation needs them (ms).
local keys, groups, dirty, place = KEYS, {}, {}, false

local function group(i)
  local g = groups[i]
  if not g then
    g = raw[i] and unpack_(raw[i]) or {}
    groups[i] = g
  end
  return g
end

local grain, never = 60000, -1
local cold
local loads, stale, missing = A[4] == 1, false, false
local parts = { [2] = 61, [3] = 289 }
local width = { [2] = 1000, [3] = 300000 }

-- bucket: 1 kind, 2 gen, 3 rate, 4 ceiling, 5 level, 6 last, 7 held, 8 turn, then
-- its rooms: since, least, calls
local function refill(b)
  local e = latest - b[6]
  if e <= 0 then return end
  b[6] = latest
  if b[3] == 0 then return end
  local full = b[4] * grain
  local missing, credit = full - b[5], e * b[3]
  if missing == 0 and #b == 8 then return end
  if credit >= missing then b[5] = full else b[5] = b[5] + credit end
  if #b == 8 then b[8] = b[8] + 1 else cold().rises(b) end
end

local function note(b)
  local n, headroom = #b, b[4] * grain - b[5]
  if n > 8 and b[n - 2] == b[8] then
    b[n - 1], b[n] = headroom, b[n] + 1
    return
  end
  b[n + 1], b[n + 2], b[n + 3] = b[8], headroom, 1
  if n + 3 > 8 + 3 * 12 then
    cold().crowded(b)
  end
end

-- sliding: 1 kind, 2 gen, 3 amount, 4 used, 5 held, 6 the current sub-bucket, then
-- those that were charged: number, amount
-- sums: whole units, and pico-units from 0 to 999,999
local function sum(n, p)
  if p >= 1000000 then return n + 1, p - 1000000 end
  if p < 0 then return n - 1, p + 1000000 end
  return n, p
end

local function above(n, p, amount) return n > amount or n == amount and p > 0 end

-- state is what an answer tells of a ledger that is up to date.
local function state(l, wait)
  local kind = l[1]
  if kind == 1 then
    local missing, full = l[4] * grain - l[5], 0
    if missing > 0 then full = l[3] == 0 and never or floor((missing + l[3] - 1) / l[3]) end
    return { wait, 1, l[4] - floor(l[5] / grain), l[7], l[4], full, l[3] }
  elseif kind == 4 then
    return { wait, 4, l[5] > 0 and l[4] + 1 or l[4], l[7] > 0 and l[6] + 1 or l[6], l[3], l[8], l[9] }
  elseif kind == 5 then
    return { wait, 5, l[4], l[3] }
  end
  local empty, c = 0, cold()
  for i = #l - 1, 7, -2 do
    if l[i + 1] ~= 0 and c.within(l, l[i]) then
      empty = c.leaves(l, l[i])
      break
    end
  end
  return { wait, kind, l[4], l[5], l[3], empty }
end

local lasts = { [2] = 61000, [3] = 289 * 300000, [4] = 0, [5] = 0 }

-- save writes what has changed, to live for as long as it says something. A
-- calendar window outlives its end, so that the next one is known to be new.
local function save()
  for i in pairs(dirty) do
    local g = groups[i]
    local life = (g.u or 0) - latest
    for f, l in pairs(g) do
      if f ~= 'u' then
        local n = lasts[l[1]]
        if l[1] == 1 then
          n = l[3] == 0 and 0 or (l[4] * grain - l[5]) / l[3]
        elseif l[1] == 4 then
          n = l[9] - latest + 129600000
        end
        if n > life then life = n end
      end
    end
    if life < 0 then life = 0 end
    call('SET', keys[i], pack(g), 'PX', floor(life) + 120000)
  end
  call('SET', P, pack(head), 'PX', 691200000)
end

local function answer(t)
  save()
  return pack(t)
end

-- A reservation: 1 phase (0 open, 1 lapsed, 2 expired, 3 settled, 4 cancelled),
-- 2 at, 3 expires (µs), 4 estimate, 5 requests, 6 model, 7 the candidate's model,
-- 8 end user, 9 forget, 10 late, 11 actual, 12 the request was given back, 13
-- moves, 14 how the last attempt ended, 15 candidate, 16 definitions, 17 holds,
-- 18 when to forget it (µs), 19 the process that tells of its end, 20 the
-- key and the body of a request that may come again.
--
-- A hold: 1 suffix of its group, 2 field, 3 kind, 4 amount, 5 pico, 6 mark, 7 the
-- window's end, 8 gen, 9 flags (1 candidate, 2 ended, 4 others, 8 old), 10 what it
-- counts, 11 and 12 its limit among the definitions, 13 amount and 14 ceiling of
-- the limit, 15 a name or model.
local function put(id, r)
  local life = floor((r[18] - micros) / 1000)
  if r[1] < 3 then life = life + 7200000 end
  if life < 0 then life = 0 end
  call('SET', P .. 'r' .. id, pack(r), 'PX', life + 60000)
  if r[20] ~= '' and r[1] ~= 4 then call('SET', P .. 'k' .. string.sub(r[20], 1, 16), id, 'PX', life + 60000) end
end

-- cold are the functions that few decisions need, made when one does: a script
-- makes all its functions anew each time that it runs.
local made
cold = function()
  if made then return made end
  -- at is the place of a group by the suffix of its key.
  local function at(suffix)
    if not place then
      place = {}
      for i = 2, #keys do place[keys[i]] = i end
    end
    local key = P .. suffix
    local i = place[key]
    if not i then
      i = #keys + 1
      keys[i], place[key], raw[i] = key, i, call('GET', key)
    end
    return i
  end

  local function cut(b, i)
    local n = #b
    for j = i, n - 3 do b[j] = b[j + 3] end
    b[n], b[n - 1], b[n - 2] = nil, nil, nil
  end

  local function merge(b, i)
    b[i - 1] = b[i - 1] + b[i + 2]
    cut(b, i)
  end

  local function unite(b)
    for i = #b - 2, 12, -3 do
      if b[i + 1] == b[i - 2] then merge(b, i) end
    end
  end

  -- rises notes that the level came up. Rooms of a full bucket give nothing back,
  -- no more than none would.
  local function rises(b)
    b[8] = b[8] + 1
    local n = #b
    if n == 8 then return end
    local headroom = b[4] * grain - b[5]
    if headroom == 0 then
      for i = n, 9, -1 do b[i] = nil end
      return
    end
    for i = n - 2, 9, -3 do
      if b[i + 1] <= headroom then break end
      b[i + 1] = headroom
    end
    unite(b)
  end

  -- crowded makes the two neighbours that differ least one.
  local function crowded(b)
    local best = 12
    for i = 15, #b - 5, 3 do
      if b[i + 1] - b[i - 2] < b[best + 1] - b[best - 2] then best = i end
    end
    merge(b, best)
  end

  local function forgive(b)
    local least = -b[4] * grain
    if b[5] < least then
      b[5] = least
      rises(b)
    end
  end

  local function spend(b, cost)
    local most = 3 * b[4] + 1
    if cost > most then cost = most end
    b[5] = b[5] - cost * grain
    forgive(b)
  end

  local function find(b, since)
    local i = #b - 2
    while i >= 9 and b[i] > since do i = i - 3 end
    return i >= 9 and i
  end

  local function release(b, since)
    local i = find(b, since)
    if not i then return end
    b[i + 2] = b[i + 2] - 1
    if b[i + 2] <= 0 then cut(b, i) end
  end

  local function give_back(b, since, want)
    local i = find(b, since)
    if not i then return 0 end
    local given = b[i + 1]
    if want < given then given = want end
    for j = i, #b - 2, 3 do b[j + 1] = b[j + 1] - given end
    for j = 9, i - 3, 3 do
      if b[j + 1] > b[i + 1] then b[j + 1] = b[i + 1] end
    end
    unite(b)
    return given
  end

  local function slide(s)
    local number = floor(latest / width[s[1]])
    if number <= s[6] then return end
    s[6] = number
    local first, n, gone = number - parts[s[1]], #s, 0
    while 7 + gone < n and s[7 + gone] <= first do
      s[4] = s[4] - s[8 + gone]
      gone = gone + 2
    end
    if gone == 0 then return end
    for i = 7, n - gone do s[i] = s[i + gone] end
    for i = n, n - gone + 1, -1 do s[i] = nil end
  end

  local function add(s, number, n)
    s[4] = s[4] + n
    local i = #s - 1
    while i >= 7 and s[i] > number do i = i - 2 end
    if i >= 7 and s[i] == number then
      s[i + 1] = s[i + 1] + n
    elseif n ~= 0 then
      table.insert(s, i + 2, n)
      table.insert(s, i + 2, number)
    end
  end

  local function within(s, number) return number > s[6] - parts[s[1]] and number <= s[6] end

  local function leaves(s, number) return (number + parts[s[1]]) * width[s[1]] - latest end

  -- what a ledger takes from its limit: fields of a charge (see judge) and of a
  -- hold. spent_since is when a ledger that may have been used was last seen.
  local spent_since = A[2]

  local function fresh(kind, amount, ceiling, old)
    local since = latest
    if old and spent_since < since then since = spent_since end
    if kind == 1 then
      return { 1, micros, amount, ceiling, old and 0 or ceiling * grain, since, 0, 0 }
    elseif kind == 5 then
      return { 5, micros, amount, 0 }
    end
    local s = { kind, micros, amount, 0, 0, floor(since / width[kind]) }
    if old then add(s, s[6], amount) end
    return s
  end

  -- convert keeps what is used over a change of policy.
  local function convert(l, kind, amount, ceiling)
    local taken
    if l[1] == 1 then
      refill(l)
      taken = l[4] - floor(l[5] / grain)
    else
      slide(l)
      taken = l[4]
    end
    local n = fresh(kind, amount, ceiling, false)
    n[2] = l[2] + 1
    if kind == 1 then spend(n, taken) else add(n, n[6], taken) end
    return n
  end

  -- turn begins the calendar window that runs.
  local function turn(c, from, to)
    if from ~= c[8] then c[4], c[5], c[6], c[7] = 0, 0, 0, 0 end
    c[8], c[9] = from, to
  end

  local function flag(n, bit) return floor(n / bit) % 2 == 1 end

  -- held is the ledger that a hold charged, if it is the same making of it.
  local function held(h)
    if h[8] == 0 then return nil end
    local i = at(h[1])
    local l = group(i)[h[2]]
    if l and l[2] == h[8] then
      return l, i
    end
  end

  -- free ends an open hold: what it charged stays charged.
  local function free(h, l)
    if l[1] == 1 then
      l[7] = l[7] - h[4]
    elseif l[1] == 4 then
      if l[8] == h[6] then l[6], l[7] = sum(l[6] - h[4], l[7] - h[5]) end
    elseif l[1] == 5 then
      l[4] = l[4] - h[4]
    else
      l[5] = l[5] - h[4]
    end
  end

  local function next_due()
    local first = call('ZRANGE', P .. 'o', 0, 0, 'WITHSCORES')
    head[2] = first[2] and tonumber(first[2]) or 0
  end

  local function others(e)
    local names = e[14]
    call('ZREMRANGEBYSCORE', P .. names[1], '-inf', latest)
    if call('ZCARD', P .. names[1]) < names[4] then return false end
    e.others = true
    e[1], e[2] = at(names[2]), names[3]
    return true
  end

  -- tell is the state of the ledgers of a reservation, 0 where none is kept.
  local function tell(r, all)
    local t = {}
    for i, h in ipairs(r[17]) do
      t[i] = 0
      if all or not flag(h[9], 2) then
        local l = group(at(h[1]))[h[2]]
        if l then
          if l[1] == 1 then refill(l) elseif l[1] < 4 then slide(l) end
          t[i] = state(l, 0)
        end
      end
    end
    return t
  end

  -- needs is the answer where windows have to be computed for another instant, or
  -- loaded: their suffix, field, amount and window.
  local function needs()
    local list = {}
    for i, e in ipairs(missing or {}) do list[i] = { string.sub(keys[e[1]], #P + 1), e[2], e[4], e[12], e[13] } end
    return answer({ 1, micros, latest, stale and 1 or 0, list })
  end

  made = {
    at = at, rises = rises, crowded = crowded, forgive = forgive, spend = spend, release = release, give_back = give_back,
    slide = slide, add = add, within = within, leaves = leaves, fresh = fresh, convert = convert, turn = turn,
    flag = flag, held = held, free = free, next_due = next_due, others = others, tell = tell, needs = needs,
  }
  return made
end

-- The leases that are over end before anything else happens.
if head[2] ~= 0 and head[2] <= micros then
  local c = cold()
  local due = call('ZRANGEBYSCORE', P .. 'o', '-inf', micros)
  for _, id in ipairs(due) do
    call('ZREM', P .. 'o', id)
    head[3] = head[3] - 1
    local packed = call('GET', P .. 'r' .. id)
    if packed then
      local r = unpack_(packed)
      r[1] = 1
      for _, h in ipairs(r[17]) do
        if not c.flag(h[9], 2) then
          local l, i = c.held(h)
          if l then
            c.free(h, l)
            dirty[i] = true
          end
        end
      end
      put(id, r)
      call('SADD', P .. 'l' .. r[19], id)
      call('PEXPIRE', P .. 'l' .. r[19], 14400000)
    end
  end
  c.next_due()
end

-- Calendar windows that the books told of are set where they are absent.
for _, w in ipairs(A[3]) do
  local i = cold().at(w[1])
  local g = group(i)
  if not g[w[2]] then
    g[w[2]] = { 4, micros, w[3], w[6], w[7], 0, 0, w[4], w[5] }
    dirty[i] = true
  end
end

-- A charge: 1 place of its group, 2 field, 3 kind, 4 amount and 5 ceiling of its
-- limit, 6 cost, 7 pico, 8 flags (1 shadow, 8 old), 9 what it counts, 10 and 11 its
-- limit among the definitions; of a calendar 12 and 13 the window; of a limit for
-- each name 14: the suffix of the set of its names, that of the group and the
-- field which all others share, how many names there may be. ahead and ahead_pico
-- are what others ask for before it.

local function weigh(e)
  local kind, cost, ahead = e[3], e[6], e.ahead or 0
  local g = group(e[1])
  local l = g[e[2]]
  if not l and e[14] and cold().others(e) then
    g = group(e[1])
    l = g[e[2]]
  end
  e.made = false
  if kind == 4 then
    if (not l or latest >= l[9]) and (latest < e[12] or latest >= e[13]) then
      stale = true
      return false
    end
    if not l then
      if loads and e[12] < head[4] then
        missing = missing or {}
        missing[#missing + 1] = e
        return false
      end
      l = { 4, micros, e[4], 0, 0, 0, 0, e[12], e[13] }
      e.made = true
    end
    if l[3] ~= e[4] then
      l[3] = e[4]
      dirty[e[1]] = true
    end
    if latest >= l[9] then cold().turn(l, e[12], e[13]) end
    e.l = l
    local n, p = sum(l[4] + cost, l[5] + e[7])
    if ahead > 0 or e.ahead_pico then n, p = sum(n + ahead, p + e.ahead_pico) end
    if above(cost, e[7], l[3]) then
      e.wait = never
    elseif above(n, p, l[3]) then
      e.wait = l[9] * 1000 - micros
    else
      e.wait = 0
    end
    return true
  end
  if not l then
    l = cold().fresh(kind, e[4], e[5], e[8] >= 8)
    e.made = true
  elseif l[1] ~= kind then
    l = cold().convert(l, kind, e[4], e[5])
    g[e[2]] = l
    dirty[e[1]] = true
  end
  e.l = l
  local wait = 0
  if kind == 1 then
    refill(l)
    if l[3] ~= e[4] or l[4] ~= e[5] then
      local used = l[4] * grain - l[5]
      l[3], l[4] = e[4], e[5]
      l[5] = l[4] * grain - used
      cold().forgive(l)
      dirty[e[1]] = true
    end
    if cost > l[4] then
      wait = never
    else
      local lacks = (cost + ahead) * grain - l[5]
      if lacks > 0 then wait = l[3] == 0 and never or floor((lacks + l[3] - 1) / l[3]) end
    end
  elseif kind == 5 then
    if l[3] ~= e[4] then
      l[3] = e[4]
      dirty[e[1]] = true
    end
    if cost > l[3] then
      wait = never
    elseif cost + ahead > l[3] - l[4] then
      e.wait = 1000000
      return true
    end
  else
    local c = cold()
    c.slide(l)
    if l[3] ~= e[4] then
      l[3] = e[4]
      dirty[e[1]] = true
    end
    if cost > l[3] then
      wait = never
    else
      local lacks = l[4] + cost + ahead - l[3]
      if lacks > 0 then
        for i = 7, #l, 2 do
          lacks = lacks - l[i + 1]
          if lacks <= 0 then
            wait = c.leaves(l, l[i])
            break
          end
        end
        if lacks > 0 then wait = c.leaves(l, l[6]) end
      end
    end
  end
  e.wait = wait > 0 and (wait + behind) * 1000 or wait
  return true
end

-- judge weighs charges: whether they refuse, never fit, and for how long (µs).
-- Charges of limits in shadow mode don't count.
local function judge(list)
  local refuses, ever, wait, ready = false, true, 0, true
  for i = 1, #list do
    local e = list[i]
    if not weigh(e) then
      ready = false
    elseif e.wait ~= 0 and e[8] % 2 == 0 then
      refuses = true
      if e.wait == never then ever = false elseif e.wait > wait then wait = e.wait end
    end
  end
  return refuses, ever, wait, ready
end

-- choose is the first candidate that fits, or the one that would fit soonest.
local function choose(candidates)
  local best, refuses, ever, wait, ready = 0, false, true, 0, true
  for i = 1, #candidates do
    local r, e, w, known = judge(candidates[i])
    ready = ready and known
    if known and not r then return i, false, true, 0, ready end
    if i == 1 or (e ~= ever and e) or (e == ever and w < wait) then best, refuses, ever, wait = i, r, e, w end
  end
  return best, refuses, ever, wait, ready
end

-- take charges a list to a reservation, but for what a shadow limit refuses.
local function take(r, list, candidate, until_ms)
  local holds = r[17]
  for i = 1, #list do
    local e = list[i]
    if e.wait == 0 then
      local l, k = e.l, e[1]
      local g = groups[k]
      if e.made then
        g[e[2]] = l
        if e[14] and not e.others then
          local last = until_ms + (lasts[e[3]] or 180000)
          if l[9] and e[3] == 4 then last = l[9] + 129600000 end
          call('ZADD', P .. e[14][1], last, keys[k] .. e[2])
          call('PEXPIRE', P .. e[14][1], 4000000000)
        end
      end
      local kind, n, mark, to = e[3], e[6], 0, 0
      if kind == 1 then
        l[5] = l[5] - n * grain
        l[7] = l[7] + n
        mark = l[8]
        note(l)
      elseif kind == 4 then
        l[4], l[5] = sum(l[4] + n, l[5] + e[7])
        l[6], l[7] = sum(l[6] + n, l[7] + e[7])
        mark, to = l[8], l[9]
      elseif kind == 5 then
        l[4] = l[4] + n
      else
        mark = l[6]
        cold().add(l, mark, n)
        l[5] = l[5] + n
      end
      if not g.u or g.u < until_ms then g.u = until_ms end
      dirty[k] = true
      holds[#holds + 1] = { string.sub(keys[k], #P + 1), e[2], kind, n, e[7], mark, to, l[2],
        (candidate ~= '' and 1 or 0) + (e.others and 4 or 0) + (e[8] >= 8 and 8 or 0),
        e[9], e[10], e[11], e[4], e[5], candidate ~= '' and candidate or '' }
    end
  end
end

local function states(list)
  local t = {}
  for i = 1, #list do
    local e = list[i]
    t[i] = state(e.l, e.wait)
    if e.others then t[i][2] = t[i][2] + 10 end
  end
  return t
end

