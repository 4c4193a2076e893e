-- What follows a reservation, other than the usual end (swift_settle.lua).
local function load(name)
  local s = call('GET', P .. 'r' .. name)
  local r = s and open_record(s)
  if r and r[1] >= 2 and r[18] <= micros then return nil end
  return r, s
end

-- cost is what a hold counts of a call: units, five token classes, the customer's
-- and the provider's price (whole, pico).
local function cost(h, v, requests)
  local counts = h[10]
  if counts == 1 then return requests, 0 end
  if counts == 2 then return v[1], 0 end
  if counts == 3 then return v[2] + v[3] + v[4] + v[5] + v[6], 0 end
  if counts == 4 then return 1, 0 end
  if counts == 5 then return v[7], v[8] end
  if counts == 6 then return v[9], v[10] end
  return floor((v[2] * counts[1] + v[3] * counts[2] + v[4] * counts[3] + v[5] * counts[4] + v[6] * counts[5] + 999) / 1000), 0
end

local function figures_of(s)
  local v = { take('<' .. rep('d', #s / 8), s) }
  for i = #v, 10 do v[i] = 0 end -- the first of these is not a figure
  return v
end

-- settle_lost settles a hold whose ledger was made anew since: nothing is given
-- back, but an overrun counts, and counts now.
local function settle_lost(h, n, p)
  local i = at(h[1])
  local g = group(i)
  local l, kind = g[h[2]], h[3]
  if kind == 4 then
    if l and l[1] == 4 and l[8] == h[6] then
      l[4], l[5] = sum(l[4] + n - h[4], l[5] + p - h[5])
      dirty[i] = true
    end
    return
  end
  local more = n - h[4]
  if kind == 5 or more <= 0 then return end
  if h[8] ~= 0 and (kind == 2 or kind == 3) and floor(latest / width[kind]) - h[6] >= parts[kind] then return end
  if not l then
    l = fresh(kind, h[13], h[14], flag(h[9], 8))
    own(g, h[2], l)
  end
  dirty[i] = true
  if l[1] == 1 then
    refill(l)
    spend(l, more)
  else
    slide(l)
    add(l, l[6], more)
  end
end

local function settle(h, n, p, was_open)
  local l, i = held(h)
  if not l then return settle_lost(h, n, p) end
  dirty[i] = true
  if l[1] == 1 then
    settle_bucket(l, h[6], h[4], n, was_open)
    return
  elseif l[1] == 4 then
    if l[8] == h[6] then l[4], l[5] = sum(l[4] + n - h[4], l[5] + p - h[5]) end
  elseif l[1] ~= 5 then
    slide(l)
    if within(l, h[6]) then add(l, h[6], n - h[4]) end
  end
  if was_open then free(h, l) end
end

local function ended()
  call('ZREM', P .. 'o', id)
  open = open - 1
end

-- 1 settle or cancel: the phase, whether the request is given back, the figures,
-- and the process that tells of it from now on.
if what == 1 then
  local as, back, figures, owner = take('<BBBc0Bc0', ask, rest)
  local r, s = load(id)
  if not r then return answer(5) end
  local is_first, same = false, true
  if r[1] >= 3 then
    same = r[1] == as and r[11] == figures and r[12] == back
  else
    is_first = true
    local is_open = r[1] == 0
    if is_open then
      ended()
    elseif r[1] == 1 then
      call('SREM', P .. 'l' .. r[19], id)
    else
      r[10] = 1
    end
    r[1], r[11], r[12], r[19] = as, figures, back, owner
    if r[18] < micros + 60000000 then r[18] = micros + 60000000 end
    local v, requests = figures_of(figures), back == 1 and 0 or r[5]
    for _, h in ipairs(r[17]) do
      if not flag(h[9], 2) then
        local n, p = cost(h, v, requests)
        settle(h, n, p, is_open)
      end
    end
    if r[9] == 1 then
      call('DEL', P .. 'r' .. id)
      s = close_record(r)
    else
      s = keep(id, r)
    end
  end
  return answer(0, put('<BB', is_first and 1 or 0, same and 1 or 0) .. told_record(s) .. tell(r) .. put('<d', born))
end

-- 2 extend: until (µs), at most how far from now.
if what == 2 then
  local till, most = take('<dd', ask, rest)
  local r = load(id)
  if not r then return answer(5) end
  if r[1] >= 3 then return answer(6) end
  if r[1] ~= 0 then return answer(7) end
  if till - micros > most then return answer(8) end
  if till > r[3] then
    r[3], r[18] = till, till + 3600000000
    for _, h in ipairs(r[17]) do
      local l, i = held(h)
      if l then needed(i, floor(till / 1000) + 1) end
    end
    queue(id, till)
    keep(id, r)
  end
  return answer(0, put('<d', r[3]))
end

-- 3 move: the attempt, whether its request is given back, whether the only candidate
-- was charged already elsewhere, and so fits, the attempt's figures, and the charges
-- of the candidates (charges.lua). ARGV[2] are definitions to add, ARGV[3] and on the
-- holds of each candidate.
if what == 3 then
  local attempt, back, forced, figures, from = take('<dBBBc0', ask, rest)
  local _, candidates = charges(from)
  local r, s = load(id)
  if not r then return answer(5) end
  if r[1] >= 3 then return answer(6) end
  if r[1] ~= 0 then return answer(7) end
  local moved = back .. figures
  if r[13] > 0 and attempt == r[13] - 1 and moved == r[14] then
    return answer(2, put('<Bc0', #id, id) .. told_record(s) .. tell(r))
  end
  if attempt ~= r[13] then return answer(9) end
  for _, list in ipairs(candidates) do
    for _, e in ipairs(list) do
      if e[3] == 4 then weigh(e) end
    end
  end
  if stale or #missing > 0 then return needs(stale, missing) end
  local v, requests = figures_of(figures), back == 1 and 0 or r[5]
  for _, h in ipairs(r[17]) do
    if flag(h[9], 1) and not flag(h[9], 2) then
      local n, p = cost(h, v, requests)
      settle(h, n, p, true)
      h[4], h[5], h[9] = n, p, h[9] + 2
    end
  end
  r[13], r[14] = r[13] + 1, moved
  local chosen, full, ever, wait = choose(candidates)
  if forced == 1 and full then
    full = false
    for _, e in ipairs(candidates[1]) do
      if not e.shadow then e.wait = 0 end
    end
  end
  local admitted = not full and chosen > 0
  r[15] = -1
  if admitted then
    r[15] = chosen - 1
    local had, texts, n = #r[16], ARGV[2], nil
    n, from = take('<H', texts)
    for i = 1, n do r[16][had + i], from = take('<Ic0', texts, from) end
    local holds = {}
    texts, from = ARGV[2 + chosen], 1
    for i = 1, #candidates[chosen] do
      holds[i], from = hold(texts, from, holds[i - 1])
      holds[i][11] = holds[i][11] + had
    end
    charge(r, candidates[chosen], holds, floor(r[3] / 1000) + 1)
  end
  return answer(0, put('<BHBd', admitted and 1 or 0, chosen, ever and 1 or 0, wait) .. told_record(keep(id, r))
    .. (chosen > 0 and states(candidates[chosen]) or put('<H', 0)))
end

-- 4 expire: what has run out is handed out to the process that made it, until that
-- says that it has heard: the process, how many it has heard of, and their ids.
if what == 4 then
  local owner, heard, from = take('<Bc0H', ask, rest)
  local queue_key, list = P .. 'l' .. owner, {}
  for _ = 1, heard do
    local name
    name, from = take('<Bc0', ask, from)
    call('SREM', queue_key, name)
  end
  for _, name in ipairs(call('SMEMBERS', queue_key)) do
    local r, s = load(name)
    if r and r[1] == 1 then
      r[1] = 2
      s = keep(name, r)
    end
    if r and r[1] == 2 then
      list[#list + 1] = put('<Bc0', #name, name) .. told_record(s)
    else
      call('SREM', queue_key, name)
    end
  end
  return answer(0, put('<H', #list) .. table.concat(list) .. put('<d', first))
end

-- entries reads what 5 and 7 are told: how many, and of each its id, the phase (0:
-- open), whether the request was given back, whether limits other than calendar
-- windows count it, the figures, a byte for each hold (1: its window counts it
-- already), and the reservation. Windows that the books have to tell of are
-- missing.
local function entries(at_)
  local count, list = nil, {}
  count, at_ = take('<H', ask, at_)
  for i = 1, count do
    local e, s = {}, nil
    e.id, e.phase, e.back, e.recent, e.figures, e.counted, s, at_ = take('<Bc0BBBBc0Bc0Ic0', ask, at_)
    e.r = open_record(s)
    for _, h in ipairs(e.r[17]) do
      if h[3] == 4 and loads == 1 and h[7] > latest and h[6] < born and not group(at(h[1]))[h[2]] then
        missing[#missing + 1] = { h[1], h[2], h[13], h[6], h[7] }
      end
    end
    list[i] = e
  end
  return list
end

local function opened(name, r)
  queue(name, r[3])
  open = open + 1
  if first == 0 or r[3] < first then first = r[3] end
end

-- 5 restore: reservations of an earlier life. What is known is told of by this
-- process from now on.
if what == 5 then
  local list = entries(rest)
  if #missing > 0 then return needs(false, missing) end
  for _, e in ipairs(list) do
    local r, was = e.r, load(e.id)
    if was and was[1] < 2 and was[19] ~= r[19] then
      if was[1] == 1 then call('SMOVE', P .. 'l' .. was[19], P .. 'l' .. r[19], e.id) end
      was[19] = r[19]
      keep(e.id, was)
    elseif not was then
      if r[1] == 2 then
        r[18] = micros + 3600000000
      else
        for _, h in ipairs(r[17]) do
          local over = flag(h[9], 2)
          if h[3] == 5 and not over or h[3] == 4 and h[7] > latest then
            local i = at(h[1])
            local g = group(i)
            local l = g[h[2]]
            if not l then
              l = h[3] == 5 and fresh(5, h[13], h[14], false) or fresh_window(h[13], 0, 0, h[6], h[7])
              own(g, h[2], l)
            end
            if h[3] == 5 then
              l[4] = l[4] + h[4]
              h[8] = l[2]
            elseif l[8] == h[6] then
              l[4], l[5] = sum(l[4] + h[4], l[5] + h[5])
              if not over then l[6], l[7] = sum(l[6] + h[4], l[7] + h[5]) end
              h[8] = l[2]
            end
            needed(i, floor(r[3] / 1000) + 1)
          end
        end
        opened(e.id, r)
      end
      keep(e.id, r)
    end
  end
  return answer(0, put('<dd', first, born))
end

-- 7 adopt: what a process admitted by itself while this server was out, or what
-- ended before it lost its state.
if what == 7 then
  local list = entries(rest)
  if #missing > 0 then return needs(false, missing) end
  for _, e in ipairs(list) do
    local r = e.r
    if not load(e.id) then
      local v, requests = nil, 0
      if e.phase >= 3 then v, requests = figures_of(e.figures), e.back == 1 and 0 or r[5] end
      for j, h in ipairs(r[17]) do
        local n, p, kind = h[4], h[5], h[3]
        if v and not flag(h[9], 2) then n, p = cost(h, v, requests) end
        if string.byte(e.counted, j) ~= 1 and (kind == 4 and h[7] > latest or kind ~= 4 and e.recent == 1) then
          local i = at(h[1])
          local g = group(i)
          local l = g[h[2]]
          if not l then
            l = kind == 4 and fresh_window(h[13], 0, 0, h[6], h[7]) or fresh(kind, h[13], h[14], false)
            own(g, h[2], l)
          end
          needed(i, floor(r[3] / 1000) + 1)
          h[8] = l[2]
          local is_open = not v and not flag(h[9], 2)
          if l[1] == 1 then
            refill(l)
            spend(l, n)
            h[6] = l[8]
            if is_open then
              l[7] = l[7] + n
              note(l)
            end
          elseif l[1] == 4 then
            if l[8] == h[6] then
              l[4], l[5] = sum(l[4] + n, l[5] + p)
              if is_open then l[6], l[7] = sum(l[6] + n, l[7] + p) end
            end
          elseif l[1] == 5 then
            if is_open then l[4] = l[4] + n end
          else
            slide(l)
            h[6] = l[6]
            add(l, h[6], n)
            if is_open then l[5] = l[5] + n end
          end
        end
      end
      if v then
        r[1], r[11], r[12] = e.phase, e.figures, e.back
        if r[18] < micros + 60000000 then r[18] = micros + 60000000 end
      else
        opened(e.id, r)
      end
      keep(e.id, r)
    end
  end
  return answer(0, put('<dd', first, born))
end

-- 8 which reading of the books calendar windows began with (empty: none): how
-- many, and of each its suffix, field, amount and window.
if what == 8 then
  local count, list, from = nil, {}, rest
  count, from = take('<H', ask, from)
  for i = 1, count do
    local suffix, field, amount, start, to
    suffix, field, amount, start, to, from = take('<Bc0Bc0ddd', ask, from)
    local l = group(at(suffix))[field]
    if not l and loads == 1 and to > latest and start < born then missing[#missing + 1] = { suffix, field, amount, start, to } end
    local s, reading = l and call('HGET', P .. 'b', suffix .. ' ' .. field), ''
    if s and l[8] == start and take('<d', s) == start then reading = string.sub(s, 9) end
    list[i] = put('<Hc0', #reading, reading)
  end
  if #missing > 0 then return needs(false, missing) end
  return answer(0, put('<d', born) .. table.concat(list))
end

-- 6 look at a reservation
local r, s = load(id)
if not r then return answer(5) end
return answer(0, told_record(s))
