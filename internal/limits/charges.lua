-- A charge: 1 place of its group, 2 field, 3 kind, 4 amount and 5 ceiling of its
-- limit, 6 cost, 7 pico, 8 flags (1 shadow, 8 old, 16 names), 9 and 10 the window
-- of a calendar; of a limit for each name, names: the suffix of the set of its
-- names, that of the group and the field which all others share, how many names
-- there may be. ahead and ahead_pico are what others ask for before it.
local stale, missing = false, {}

-- charges reads a list of charges after which others may follow: counts, and those
-- of the plan and of each candidate.
local function charges(at_)
  local plan_count, all, fields_length, count, from = take('<HHHH', ask, at_)
  local lists, ends = { {} }, { plan_count }
  for i = 1, count do
    ends[i + 1], from = take('<H', ask, from)
    lists[i + 1], ends[i + 1] = {}, ends[i] + ends[i + 1]
  end
  local fields, of = from + 48 * all, 1
  local flags = fields + fields_length
  local names = flags + 17 * all
  for j = 1, all do
    while j > ends[of] do of = of + 1 end
    local e = {}
    e[1], e[3], e[4], e[5], e[6], e[7], from = take('<dddddd', ask, from)
    e[2], fields = take('<Bc0', ask, fields)
    e[2] = string.sub(e[2], 2, -2)
    e[8], e[9], e[10], flags = take('<Bdd', ask, flags)
    e.shadow, e.old, e.ahead, e.ahead_pico = flag(e[8], 1), flag(e[8], 8), 0, 0
    if e[8] >= 16 then
      e.names = { take('<Bc0Bc0Bc0d', ask, names) }
      names = e.names[5]
    end
    table.insert(lists[of], e)
  end
  return table.remove(lists, 1), lists, names
end

local function others(e)
  local names = e.names
  call('ZREMRANGEBYSCORE', P .. names[1], '-inf', latest)
  if call('ZCARD', P .. names[1]) < names[4] then return false end
  e.others = true
  e[1], e[2] = at(names[2]), names[3]
  return true
end

-- crowded tells whether the groups that charges make are more than the tenant may
-- have. Those whose lives are over are forgotten first.
local function crowded(...)
  local new, fresh_ones = 0, {}
  for _, list in ipairs({ ... }) do
    for _, e in ipairs(list) do
      if e.made and e.wait == 0 and groups[e[1]].x == 0 and not fresh_ones[e[1]] then
        new, fresh_ones[e[1]] = new + 1, true
      end
    end
  end
  if new == 0 or call('ZCARD', P .. 'g') + new <= most_groups then return false end
  call('ZREMRANGEBYSCORE', P .. 'g', '-inf', latest)
  return call('ZCARD', P .. 'g') + new > most_groups
end

local function amount_of(l, e)
  if l[3] ~= e[4] then
    l[3] = e[4]
    dirty[e[1]] = true
  end
end

-- weigh finds the ledger of a charge and how long it waits (µs; 0: it fits). It
-- is false where a window has to be worked out or loaded first.
local function weigh(e)
  local kind, cost, ahead = e[3], e[6], e.ahead
  local g = group(e[1])
  local l = g[e[2]]
  if not l and e.names and others(e) then
    g = group(e[1])
    l = g[e[2]]
  end
  e.made = false
  if kind == 4 then
    if (not l or latest >= l[9]) and (latest < e[9] or latest >= e[10]) then
      stale = true
      return false
    end
    if not l then
      if loads == 1 and e[9] < born then
        missing[#missing + 1] = { string.sub(keys[e[1]], #P + 1), e[2], e[4], e[9], e[10] }
        return false
      end
      l = fresh_window(e[4], 0, 0, e[9], e[10])
      e.made = true
    end
    amount_of(l, e)
    if latest >= l[9] then -- the window that runs begins
      if e[9] ~= l[8] then l[4], l[5], l[6], l[7] = 0, 0, 0, 0 end
      l[8], l[9] = e[9], e[10]
    end
    e.l = l
    local n, p = sum(l[4] + cost, l[5] + e[7])
    n, p = sum(n + ahead, p + e.ahead_pico)
    if cost > l[3] or cost == l[3] and e[7] > 0 then
      e.wait = never
    elseif n > l[3] or n == l[3] and p > 0 then
      e.wait = l[9] * 1000 - micros
    else
      e.wait = 0
    end
    return true
  end
  if not l then
    l = fresh(kind, e[4], e[5], e.old)
    e.made = true
  elseif l[1] ~= kind then
    l = convert(l, kind, e[4], e[5])
    own(g, e[2], l)
    dirty[e[1]] = true
  end
  e.l = l
  local wait = 0
  if kind == 1 then
    refill(l)
    if l[3] ~= e[4] or l[4] ~= e[5] then
      resize(l, e[4], e[5])
      dirty[e[1]] = true
    end
    if cost > l[4] then
      wait = never
    else
      local lacks = (cost + ahead) * grain - l[5]
      if lacks > 0 then wait = l[3] == 0 and never or floor((lacks + l[3] - 1) / l[3]) end
    end
  elseif kind == 5 then
    amount_of(l, e)
    if cost > l[3] then
      wait = never
    elseif cost + ahead > l[3] - l[4] then
      e.wait = 1000000
      return true
    end
  else
    slide(l)
    amount_of(l, e)
    if cost > l[3] then
      wait = never
    else
      local lacks = l[4] + cost + ahead - l[3]
      if lacks > 0 then
        for i = 7, #l, 2 do
          lacks = lacks - l[i + 1]
          if lacks <= 0 then
            wait = leaves(l, l[i])
            break
          end
        end
        if lacks > 0 then wait = leaves(l, l[6]) end
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
    elseif e.wait ~= 0 and not e.shadow then
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

-- charge adds the holds of a list to a reservation, but for what a shadow limit
-- refuses, and charges their ledgers.
local function charge(r, list, holds, until_ms)
  for i = 1, #list do
    local e, h = list[i], holds[i]
    if e.wait == 0 then
      local l, k = e.l, e[1]
      local kind, n = e[3], e[6]
      if e.made then
        own(groups[k], e[2], l)
        if e.names and not e.others then
          local last = until_ms
          if kind == 4 then
            last = l[9] + 129600000
          elseif kind ~= 5 then
            last = last + (kind == 1 and 180000 or kind == 2 and 61000 or 289 * 300000)
          end
          call('ZADD', P .. e.names[1], last, keys[k] .. e[2])
          call('PEXPIRE', P .. e.names[1], 4000000000)
        end
      end
      local mark, to = 0, 0
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
        add(l, mark, n)
        l[5] = l[5] + n
      end
      needed(k, until_ms)
      h[6], h[7], h[8] = mark, to, l[2]
      if e.others then h[1], h[2], h[9] = string.sub(keys[k], #P + 1), e[2], h[9] + 4 end
      r[17][#r[17] + 1] = h
    end
  end
end

-- states are those of a list of charges, after how many there are.
local function states(list)
  local t = {}
  for i = 1, #list do
    local e = list[i]
    t[i] = state(e.l, e.wait, e.others)
  end
  return put('<H', #t) .. table.concat(t)
end
