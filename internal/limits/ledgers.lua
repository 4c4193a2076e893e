-- Ledgers of the limits engine, as sliding.go, calendar.go and gauge.go state
-- them, and what is done with any of them.
local never = -1
local c = buckets()
local refill, note, resize, spend, settle_bucket = c.refill, c.note, c.resize, c.spend, c.settle
local parts = { [2] = 61, [3] = 289 }
local width = { [2] = 1000, [3] = 300000 }
local place = {}
for i = 2, #keys do place[keys[i]] = i end

-- at is the place of a group by the suffix of its key.
local function at(suffix)
  local key = P .. suffix
  local i = place[key]
  if not i then
    i = #keys + 1
    keys[i], place[key], raw[i] = key, i, call('GET', key)
  end
  return i
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

local function flag(n, bit) return floor(n / bit) % 2 == 1 end

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

local function fresh_window(amount, used, pico, from, to) return { 4, micros, amount, used, pico, 0, 0, from, to } end

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

-- held is the ledger that a hold charged, if it is the same making of it.
local function held(h)
  if h[8] == 0 then return nil end
  local i = at(h[1])
  local l = group(i)[h[2]]
  if l and l[2] == h[8] then return l, i end
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

local function needed(i, until_ms)
  local g = groups[i]
  if g.u < until_ms then g.u = until_ms end
  dirty[i] = true
end

local function queue(id, due)
  call('ZADD', P .. 'o', due, id)
  call('PEXPIRE', P .. 'o', '14400000')
end

local function next_due()
  local list = call('ZRANGE', P .. 'o', 0, 0, 'WITHSCORES')
  first = list[2] and tonumber(list[2]) or 0
end

-- state is a ledger that is up to date, for an answer: the wait (µs), whether all
-- beyond the bound on names share it, its kind, how many numbers follow, and its
-- own, as group.lua has them; of a window that slides the last is when it is empty.
local function state(l, wait, others)
  local n, list = #l, l
  if l[1] == 1 then
    n = 8
  elseif l[1] == 2 or l[1] == 3 then
    local empty = 0
    for i = n - 1, 7, -2 do
      if l[i + 1] ~= 0 and within(l, l[i]) then
        empty = leaves(l, l[i])
        break
      end
    end
    n, list = 7, { l[1], l[2], l[3], l[4], l[5], l[6], empty }
  end
  return put('<dBBB' .. rep('d', n - 1), wait, others and 1 or 0, l[1], n - 1, unpack(list, 2, n))
end

-- tell is the state of the ledgers of a reservation that are kept, with their
-- places, after how many there are.
local function tell(r)
  local list = {}
  for i, h in ipairs(r[17]) do
    if not flag(h[9], 2) then
      local l = group(at(h[1]))[h[2]]
      if l then
        if l[1] == 1 then refill(l) elseif l[1] < 4 then slide(l) end
        list[#list + 1] = put('<H', i) .. state(l, 0, false)
      end
    end
  end
  return put('<H', #list) .. table.concat(list)
end

-- answer saves what has changed; its answer is a status, the instant, and rest.
local function answer(status, rest)
  for i in pairs(dirty) do save_group(i) end
  save_head(false)
  return { put('<Bdd', status, micros, latest), rest or '' }
end

-- needs is the answer where windows have to be worked out for another instant, or
-- loaded: their suffix, field, amount and window.
local function needs(stale, missing)
  local list = {}
  for i, w in ipairs(missing) do list[i] = put('<Bc0Bc0ddd', #w[1], w[1], #w[2], w[2], w[3], w[4], w[5]) end
  return answer(1, put('<BH', stale and 1 or 0, #list) .. table.concat(list))
end

-- told_record is a reservation in an answer.
local function told_record(s) return put('<I', #s) .. s end

-- The leases that are over end before anything else happens.
if first ~= 0 and first <= micros then
  local due = call('ZRANGEBYSCORE', P .. 'o', '-inf', micros)
  for _, id in ipairs(due) do
    call('ZREM', P .. 'o', id)
    open = open - 1
    local packed = call('GET', P .. 'r' .. id)
    if packed then
      local r = open_record(packed)
      r[1] = 1
      for _, h in ipairs(r[17]) do
        if not flag(h[9], 2) then
          local l, i = held(h)
          if l then
            free(h, l)
            dirty[i] = true
          end
        end
      end
      keep(id, r)
      call('SADD', P .. 'l' .. r[19], id)
      call('PEXPIRE', P .. 'l' .. r[19], 14400000)
    end
  end
  next_due()
end

-- Calendar windows that the books told of are set where they are absent; which
-- reading of the books each began with is kept beside them.
if told == 1 then
  local list = ARGV[#ARGV]
  local reading, count, from = take('<Hc0H', list)
  for _ = 1, count do
    local suffix, field, amount, start, to, used, pico
    suffix, field, amount, start, to, used, pico, from = take('<Bc0Bc0ddddd', list, from)
    local i = at(suffix)
    local g = group(i)
    if not g[field] then
      own(g, field, fresh_window(amount, used, pico, start, to))
      dirty[i] = true
      call('HSET', P .. 'b', suffix .. ' ' .. field, put('<d', start) .. reading)
      call('PEXPIRE', P .. 'b', 3456000000)
    end
  end
end
