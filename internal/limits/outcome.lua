-- What follows a reservation: A is 5 what to do, 6 the id.
local what, id = A[5], A[6]
local c = cold()
local at, spend, release, give_back = c.at, c.spend, c.release, c.give_back
local slide, add, within, fresh = c.slide, c.add, c.within, c.fresh
local flag, held, free, tell, needs = c.flag, c.held, c.free, c.tell, c.needs

local function load(name)
  local packed = call('GET', P .. 'r' .. name)
  local r = packed and unpack_(packed)
  if r and r[1] >= 2 and r[18] <= micros then return nil end
  return r
end

-- cost is what a hold counts of a call: units, five token classes, the customer's
-- and the provider's price (whole, pico).
local function cost(h, v, requests)
  local counts = h[10]
  if counts == 1 then return requests, 0 end
  if counts == 2 then return v[1], 0 end
  if counts == 4 then return 1, 0 end
  if counts == 5 then return v[7], v[8] end
  if counts == 6 then return v[9], v[10] end
  return floor((v[2] * counts[1] + v[3] * counts[2] + v[4] * counts[3] + v[5] * counts[4] + v[6] * counts[5] + 999) / 1000), 0
end

-- settle_lost settles a hold whose ledger was made anew since: nothing is given
-- back, but an overrun counts, and counts now.
local function settle_lost(h, n, p, open)
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
    g[h[2]] = l
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

local function settle(h, n, p, open)
  local l, i = held(h)
  if not l then return settle_lost(h, n, p, open) end
  dirty[i] = true
  if l[1] == 1 then
    refill(l)
    if n > h[4] then
      spend(l, n - h[4])
    elseif n < h[4] then
      l[5] = l[5] + give_back(l, h[6], (h[4] - n) * grain)
      l[8] = l[8] + 1
    end
    if open then free(h, l) end
    release(l, h[6])
    return
  elseif l[1] == 4 then
    if l[8] == h[6] then l[4], l[5] = sum(l[4] + n - h[4], l[5] + p - h[5]) end
  elseif l[1] ~= 5 then
    slide(l)
    if within(l, h[6]) then add(l, h[6], n - h[4]) end
  end
  if open then free(h, l) end
end

local function ended(r)
  call('ZREM', P .. 'o', id)
  head[3] = head[3] - 1
end

-- 1 settle or cancel: 7 the phase, 8 the figures (packed), 9 the request is given
-- back.
if what == 1 then
  local r = load(id)
  if not r then return answer({ 5 }) end
  local as, figures, back = A[7], A[8], A[9]
  local first, same = false, true
  if r[1] >= 3 then
    same = r[1] == as and r[11] == figures and r[12] == back
  else
    first = true
    local open = r[1] == 0
    if open then
      ended(r)
    elseif r[1] == 1 then
      call('SREM', P .. 'l' .. r[19], id)
    else
      r[10] = 1
    end
    r[1], r[11], r[12] = as, figures, back
    if r[18] < micros + 60000000 then r[18] = micros + 60000000 end
    local v, requests = unpack_(figures), back == 1 and 0 or r[5]
    for _, h in ipairs(r[17]) do
      if not flag(h[9], 2) then
        local n, p = cost(h, v, requests)
        settle(h, n, p, open)
      end
    end
    if r[9] == 1 then call('DEL', P .. 'r' .. id) else put(id, r) end
  end
  local t = tell(r, false)
  return answer({ 0, micros, latest, first and 1 or 0, same and 1 or 0, r, t })
end

-- 2 extend: 7 until (µs), 8 at most how far from now.
if what == 2 then
  local r = load(id)
  if not r then return answer({ 5 }) end
  if r[1] >= 3 then return answer({ 6 }) end
  if r[1] ~= 0 then return answer({ 7 }) end
  local till = A[7]
  if till - micros > A[8] then return answer({ 8 }) end
  if till > r[3] then
    r[3], r[18] = till, till + 3600000000
    local until_ms = floor(till / 1000) + 1
    for _, h in ipairs(r[17]) do
      local l, i = held(h)
      if l then
        local g = group(i)
        if not g.u or g.u < until_ms then g.u = until_ms end
        dirty[i] = true
      end
    end
    call('ZADD', P .. 'o', till, id)
    call('PEXPIRE', P .. 'o', 14400000)
    put(id, r)
  end
  return answer({ 0, micros, latest, r[3] })
end

-- 3 move: 7 the attempt, 8 its figures (packed), 9 the request is given back, 10
-- the candidates' charges, 11 their models, 12 definitions to add.
if what == 3 then
  local r = load(id)
  if not r then return answer({ 5 }) end
  if r[1] >= 3 then return answer({ 6 }) end
  if r[1] ~= 0 then return answer({ 7 }) end
  local attempt, figures, back, candidates = A[7], A[8], A[9], A[10]
  local moved = back .. figures
  if r[13] > 0 and attempt == r[13] - 1 and moved == r[14] then
    local t = tell(r, false)
    return answer({ 2, micros, latest, id, r, t })
  end
  if attempt ~= r[13] then return answer({ 9 }) end
  for _, list in ipairs(candidates) do
    for _, e in ipairs(list) do
      if e[3] == 4 then weigh(e) end
    end
  end
  if stale or missing then return needs() end
  local v, requests = unpack_(figures), back == 1 and 0 or r[5]
  for _, h in ipairs(r[17]) do
    if flag(h[9], 1) and not flag(h[9], 2) then
      local n, p = cost(h, v, requests)
      settle(h, n, p, true)
      h[4], h[5], h[9] = n, p, h[9] + 2
    end
  end
  r[13], r[14] = r[13] + 1, moved
  local chosen, full, ever, wait = choose(candidates)
  local admitted = not full and chosen > 0
  r[15], r[7] = -1, ''
  if admitted then
    r[15], r[7] = chosen - 1, A[11][chosen]
    local defs = #r[16]
    for i, d in ipairs(A[12]) do r[16][defs + i] = d end
    for _, e in ipairs(candidates[chosen]) do e[10] = e[10] + defs end
    take(r, candidates[chosen], r[7], floor(r[3] / 1000) + 1)
  end
  put(id, r)
  return answer({ 0, micros, latest, admitted and 1 or 0, chosen, ever and 1 or 0, wait, r, chosen > 0 and states(candidates[chosen]) or {} })
end

-- 4 expire: what has run out is handed out once, to the process that made it (7).
if what == 4 then
  local list = {}
  for _, name in ipairs(call('SMEMBERS', P .. 'l' .. A[7])) do
    local r = load(name)
    if r and r[1] == 1 then
      r[1] = 2
      put(name, r)
      list[#list + 1] = { name, r }
    end
  end
  call('DEL', P .. 'l' .. A[7])
  return answer({ 0, micros, latest, list, head[2] })
end

-- 5 restore: 7 a list of id and reservation. Windows that the books have to tell
-- of are asked for first. What is known is told of by this process from now on.
if what == 5 then
  local absent = {}
  for _, entry in ipairs(A[7]) do
    for _, h in ipairs(entry[2][17]) do
      if h[3] == 4 and loads and h[7] > latest and h[6] < head[4] and not group(at(h[1]))[h[2]] then
        absent[#absent + 1] = { h[1], h[2], h[13], h[6], h[7] }
      end
    end
  end
  if #absent > 0 then return answer({ 1, micros, latest, 0, absent }) end
  for _, entry in ipairs(A[7]) do
    id = entry[1]
    local r, was = entry[2], load(id)
    if was and was[1] < 2 and was[19] ~= r[19] then
      if was[1] == 1 then call('SMOVE', P .. 'l' .. was[19], P .. 'l' .. r[19], id) end
      was[19] = r[19]
      put(id, was)
    elseif not was then
      if r[1] == 2 then
        r[18] = micros + 3600000000
      else
        local until_ms = floor(r[3] / 1000) + 1
        for _, h in ipairs(r[17]) do
          local over = flag(h[9], 2)
          if h[3] == 5 and not over or h[3] == 4 and h[7] > latest then
            local i = at(h[1])
            local g = group(i)
            local l = g[h[2]]
            if not l then
              l = h[3] == 5 and fresh(5, h[13], h[14], false) or { 4, micros, h[13], 0, 0, 0, 0, h[6], h[7] }
              g[h[2]] = l
            end
            if h[3] == 5 then
              l[4] = l[4] + h[4]
              h[8] = l[2]
            elseif l[8] == h[6] then
              l[4], l[5] = sum(l[4] + h[4], l[5] + h[5])
              if not over then l[6], l[7] = sum(l[6] + h[4], l[7] + h[5]) end
              h[8] = l[2]
            end
            if not g.u or g.u < until_ms then g.u = until_ms end
            dirty[i] = true
          end
        end
        call('ZADD', P .. 'o', r[3], id)
        call('PEXPIRE', P .. 'o', 14400000)
        head[3] = head[3] + 1
        if head[2] == 0 or r[3] < head[2] then head[2] = r[3] end
      end
      put(id, r)
    end
  end
  return answer({ 0, micros, latest, head[2], head[4] })
end

-- 7 adopt: what a process admitted by itself while this server was out. A is 7 a
-- list of id, reservation, the phase (0: open), figures, whether the request was
-- given back, and whether the books may not have it yet.
if what == 7 then
  local absent, loaded = {}, {}
  for _, w in ipairs(A[3]) do loaded[w[1] .. w[2]] = true end
  for _, entry in ipairs(A[7]) do
    for _, h in ipairs(entry[2][17]) do
      if h[3] == 4 and loads and h[7] > latest and h[6] < head[4] and not group(at(h[1]))[h[2]] then
        absent[#absent + 1] = { h[1], h[2], h[13], h[6], h[7] }
      end
    end
  end
  if #absent > 0 then return answer({ 1, micros, latest, 0, absent }) end
  for _, entry in ipairs(A[7]) do
    id = entry[1]
    local r, phase = entry[2], entry[3]
    if not load(id) then
      local v, requests = nil, 0
      if phase >= 3 then v, requests = unpack_(entry[4]), entry[5] == 1 and 0 or r[5] end
      local until_ms = floor(r[3] / 1000) + 1
      for _, h in ipairs(r[17]) do
        local n, p, kind = h[4], h[5], h[3]
        if v and not flag(h[9], 2) then n, p = cost(h, v, requests) end
        local i = at(h[1])
        local g = group(i)
        local l = g[h[2]]
        if not l then
          l = kind == 4 and { 4, micros, h[13], 0, 0, 0, 0, h[6], h[7] } or fresh(kind, h[13], h[14], false)
          if kind ~= 4 or h[7] > latest then g[h[2]] = l end
        end
        dirty[i] = g[h[2]] and true or nil
        h[8] = l[2]
        if l[1] == 1 then
          refill(l)
          spend(l, n)
          h[6] = l[8]
          if not v then
            l[7] = l[7] + n
            note(l)
          end
        elseif l[1] == 4 then
          if l[8] == h[6] and (not v or entry[6] == 1 or not loaded[h[1] .. h[2]]) then
            l[4], l[5] = sum(l[4] + n, l[5] + p)
            if not v then l[6], l[7] = sum(l[6] + n, l[7] + p) end
          end
        elseif l[1] == 5 then
          if not v then l[4] = l[4] + n end
        else
          slide(l)
          h[6] = l[6]
          add(l, h[6], n)
          if not v then l[5] = l[5] + n end
        end
        if not g.u or g.u < until_ms then g.u = until_ms end
      end
      if v then
        r[1], r[11], r[12] = phase, entry[4], entry[5]
        if r[18] < micros + 60000000 then r[18] = micros + 60000000 end
      else
        call('ZADD', P .. 'o', r[3], id)
        call('PEXPIRE', P .. 'o', 14400000)
        head[3] = head[3] + 1
        if head[2] == 0 or r[3] < head[2] then head[2] = r[3] end
      end
      if not v or r[9] == 0 then put(id, r) end
    end
  end
  return answer({ 0, micros, latest, head[2], head[4] })
end

-- 6 look at a reservation
local r = load(id)
if not r then return answer({ 5 }) end
return answer({ 0, micros, latest, r })
