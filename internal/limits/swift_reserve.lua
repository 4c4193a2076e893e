local find = string.find

-- Reserve, a dry run, a look: to do is 0 reserve, 1 dry run, 2 look. What follows:
-- whether others wait, whether to forget the reservation once it has ended, its
-- requests, its time to live (µs), how many may be open, how long the plan's holds in
-- ARGV[2] are, where its texts begin, the life of its key (ms), its id (empty: one is
-- made of the instant and what follows), its random end, the key and the body of a
-- request that may come again; the charges (charges.lua); and what others ask for before
-- them.
--
-- ARGV[2] is what the reservation keeps (record.lua), with the first candidate;
-- ARGV[3] and on are the holds of the others.
local waits, forget, requests, ttl, most, plan_holds, texts_from, life, id, tail, once, listed =
  take('<BBdddIIBc0Bc0Bc0Bc0', ask, body)
local came, mine = false, false
do
  local n = #KEYS
  if once ~= '' then
    came = raw[n]
    n = n - 1
  end
  if id ~= '' then mine = raw[n] end
end

-- The charges: how many of the plan, all of them, how many bytes their fields are,
-- how many candidates, how many charges each has; of every charge six numbers
-- (place of its group, kind, amount and ceiling of its limit, cost, pico); what its
-- ledger has in the directory of its group, up to its kind; of every charge its flags (1 shadow, 8 old, 16 names) and the window of a
-- calendar; and what names need.
local plan_count, all_count, fields_length, candidate_count, counted = take('<HHHH', ask, listed)
local numbers_from = counted + 2 * candidate_count
local fields_from = numbers_from + 48 * all_count
local flags_from = fields_from + fields_length

-- The usual call: every ledger is there (for a dry run it may be new), as its limit
-- has it and with room, and nothing else is to be done first. What is not usual
-- breaks off, and nothing has changed. The answer is the groups as they are, to be
-- brought up to date. A call that is refused is usual, too, as long as there is no
-- other candidate to try: it is told how long each charge waits (µs; 0: it fits;
-- below 0: it never will).
--
-- The second number of a group becomes until when something is needed of it. Tables
-- are made in the size that most calls need: to grow one costs more than to make it.
local nothing = rep('\0', 20)

repeat
  if first ~= 0 and first <= micros or told == 1 or waits == 1 or what == 2 or came or mine or what == 0 and open >= most then break end
  local n = plan_count
  if candidate_count > 0 then n = n + take('<H', ask, counted) end
  local numbers = { take('<' .. rep('dddddd', n), ask, numbers_from) }
  local entries = { take('<' .. rep('Bc0', n), ask, fields_from) }
  local values, places, crowded = { false, false, false, false, false }, { 0, 0, 0, 0, 0, 0, 0, 0 }, nil
  local usual, i, delays = true, 1, nil
  for j = 1, n do
    local delay = 0
    local k, kind, amount, cost = numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 4]
    local s, v, b = raw[k], values[k], nil
    if s then
      if not v then
        v = open_value(s)
        values[k] = v
      end
      local directory = v[5 + 11 * v[1]]
      local _, e = find(s, entries[j], directory, true)
      if e and e < directory + v[2] then b = 11 * take('<H', s, e + 1) - 6 end
    end
    if not b then
      local flags, from, to = take('<Bdd', ask, flags_from + 17 * (j - 1))
      usual = what == 1 and flags < 8 and (kind == 1 and cost <= numbers[i + 3] or kind == 5 and cost <= amount
        or kind == 4 and latest >= from and latest < to and (loads == 0 or from >= born) and cost < amount)
    else
      places[j] = b
      if v[b + 1] ~= amount then
        usual = false
      elseif kind == 1 then
        local l = bring(s, v, b)
        if l then
          crowded = crowded or {}
          crowded[v] = crowded[v] or {}
          crowded[v][b] = l
        end
        local lacks, rate = cost * grain - v[b + 3], v[b + 1]
        usual = v[b + 2] == numbers[i + 3]
        if lacks > 0 then delay = (cost > v[b + 2] or rate == 0) and -1 or (floor((lacks + rate - 1) / rate) + behind) * 1000 end
      elseif kind == 4 then
        local pico = numbers[i + 5]
        local whole, rest = sum(v[b + 2] + cost, v[b + 3] + pico)
        usual = latest < v[b + 7]
        if whole > amount or whole == amount and rest > 0 then
          delay = (cost > amount or cost == amount and pico > 0) and -1 or v[b + 7] * 1000 - micros
        end
      else
        usual = kind == 5
        if cost > amount - v[b + 2] then delay = cost > amount and -1 or 1000000 end
      end
    end
    if delay ~= 0 then
      usual = usual and take('<B', ask, flags_from + 17 * (j - 1)) % 2 == 0 and (j <= plan_count or candidate_count == 1)
      delays = delays or { take('<' .. rep('d', n), rep('\0', 8 * n)) }
      delays[j] = delay
    end
    if not usual then break end
    i = i + 6
  end
  if not usual then break end

  local name, expires = '', 0
  if delays then
    if latest ~= seen then save_head(false) end
    local answer = { put('<Bddd' .. rep('d', n), 11, micros, latest, born, unpack(delays, 1, n)), '', '', '', '' }
    for k = 2, #KEYS - (id ~= '' and 1 or 0) - (once ~= '' and 1 or 0) do answer[k] = raw[k] or nothing end
    return answer
  elseif what == 1 then
    if latest ~= seen then save_head(false) end
  else
    expires = micros + ttl
    for k = 2, #KEYS do
      if values[k] then values[k][2] = 0 end
    end
    i = 1
    for j = 1, n do
      local k, kind, cost, pico = numbers[i], numbers[i + 1], numbers[i + 4], numbers[i + 5]
      local v, b, mark, to, need = values[k], places[j], 0, 0, 0
      if kind == 1 then
        local l = crowded and crowded[v] and crowded[v][b]
        local level = v[b + 3] - cost * grain
        local headroom = v[b + 2] * grain - level
        v[b + 3], v[b + 5], mark = level, v[b + 5] + cost, v[b + 6]
        if l then
          l[5], l[7], mark = level, v[b + 5], l[8]
          buckets().note(l)
        elseif v[b + 9] == 0 then
          v[b + 7], v[b + 8], v[b + 9] = mark, headroom, 1
        elseif v[b + 7] == mark then
          v[b + 8], v[b + 9] = headroom, v[b + 9] + 1
        else
          crowded = crowded or {}
          crowded[v] = crowded[v] or {}
          crowded[v][b] = buckets().crowd(raw[k], v, b)
          buckets().note(crowded[v][b])
        end
        if v[b + 1] > 0 then need = latest + headroom / v[b + 1] end
      elseif kind == 4 then
        v[b + 2], v[b + 3] = sum(v[b + 2] + cost, v[b + 3] + pico)
        v[b + 4], v[b + 5] = sum(v[b + 4] + cost, v[b + 5] + pico)
        mark, to = v[b + 6], v[b + 7]
        need = to + 129600000
      else
        v[b + 2] = v[b + 2] + cost
      end
      if v[2] < need then v[2] = need end
      numbers[3 * j - 2], numbers[3 * j - 1], numbers[3 * j] = mark, to, v[b] -- of the reservation, where charges were
      i = i + 6
    end
    name = id ~= '' and id or put('>I6', read) .. tail
    call('SET', P .. 'r' .. name, put('<BBBBHdddddd' .. rep('ddd', n), 0, forget, 0, 0, n, micros, expires, expires + 3600000000, requests, 0,
      candidate_count > 0 and 0 or -1, unpack(numbers, 1, 3 * n)) .. ARGV[2], 'PX', life)
    if once ~= '' then call('SET', P .. 'k' .. string.sub(once, 1, 16), name, 'PX', life) end
    call('ZADD', P .. 'o', expires, name)
    open = open + 1
    if first == 0 or expires < first then first = expires end
    save_head(open == 1)
  end
  local answer = { '', '', '', '', '' }
  for k = 2, #KEYS - (id ~= '' and 1 or 0) - (once ~= '' and 1 or 0) do
    local s, v = raw[k], values[k]
    if v and what == 0 then s = close_value(KEYS[k], s, v, floor(expires / 1000) + 1, crowded and crowded[v]) end
    answer[k] = s or nothing
  end
  answer[1] = put('<BddddBc0', 10, micros, latest, born, expires, #name, name)
  return answer
until true
