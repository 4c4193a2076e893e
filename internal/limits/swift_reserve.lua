-- Reserve, a dry run, a look: to do is 0 reserve, 1 dry run, 2 look. What follows:
-- how many charges of the plan and how many candidates, whether others wait,
-- whether to forget the reservation once it has ended, its requests, its time to
-- live (µs), how many may be open, how much of ARGV[2] is of every candidate, the
-- life of its key (ms), its id (empty: one is made of the instant and what
-- follows), its random end, the key and the body of a request that may come
-- again; how many charges each candidate has; the charges; and what others ask for
-- before them.
--
-- ARGV[2] is what the reservation keeps (record.lua) with the first candidate,
-- ARGV[3] and on the holds of the others.
local plan_count, candidate_count, waits, forget, requests, ttl, most, common, life, id, tail, once, counted =
  take('<HHBBdddIBc0Bc0Bc0Bc0', ask, body)
local listed, came, mine = counted + 2 * candidate_count, false, false
do
  local n = #KEYS
  if once ~= '' then
    came = raw[n]
    n = n - 1
  end
  if id ~= '' then mine = raw[n] end
end

-- The usual call: every ledger is there, as its limit has it and with room, and
-- nothing else is to be done first. What is not usual breaks off, and nothing has
-- changed. The answer is the groups as they are, to be brought up to date.
repeat
  if first ~= 0 and first <= micros or told == 1 or waits == 1 or what == 2 or came or mine or what == 0 and open >= most then break end
  local n, at, usual = plan_count, listed, true
  if candidate_count > 0 then n = n + take('<H', ask, counted) end
  local ledgers, places, costs, picos = {}, {}, {}, {}
  for j = 1, n do
    local k, field, kind, amount, ceiling, cost, pico, flags, from, to, next = take('<HBc0BddddBdd', ask, at)
    local l = group(k)[field]
    if not l or l[1] ~= kind or l[3] ~= amount then
      usual = false
    elseif kind == 1 then
      refill(l)
      usual = l[4] == ceiling and cost * grain <= l[5]
    elseif kind == 4 then
      local whole, rest = sum(l[4] + cost, l[5] + pico)
      usual = latest < l[9] and (whole < amount or whole == amount and rest == 0)
    else
      usual = kind == 5 and cost <= amount - l[4]
    end
    if not usual then break end
    ledgers[j], places[j], costs[j], picos[j], at = l, k, cost, pico, next
    if flags >= 16 then
      local _
      _, _, _, _, at = take('<Bc0Bc0Bc0d', ask, at)
    end
  end
  if not usual then break end

  local answer, name, expires = '', '', 0
  if what == 1 then
    if latest ~= seen then save_head(false) end
    for k = 2, #KEYS do
      if groups[k] then answer = answer .. put('<H', k) .. raw[k] end
    end
  else
    expires = micros + ttl
    local marks, m, until_ms = {}, 0, floor(expires / 1000) + 1
    for j = 1, n do
      local l, k, cost = ledgers[j], places[j], costs[j]
      local kind, mark, to = l[1], 0, 0
      if kind == 1 then
        l[5], l[7], mark = l[5] - cost * grain, l[7] + cost, l[8]
        note(l)
      elseif kind == 4 then
        l[4], l[5] = sum(l[4] + cost, l[5] + picos[j])
        l[6], l[7] = sum(l[6] + cost, l[7] + picos[j])
        mark, to = l[8], l[9]
      else
        l[4] = l[4] + cost
      end
      marks[m + 1], marks[m + 2], marks[m + 3] = mark, to, l[2]
      m = m + 3
      local g = groups[k]
      if g.u < until_ms then g.u = until_ms end
    end
    name = id ~= '' and id or put('>I6', read) .. tail
    call('SET', P .. 'r' .. name, put('<BBBBHdddddd' .. rep('d', m), 0, forget, 0, 0, n, micros, expires, expires + 3600000000, requests, 0,
      candidate_count > 0 and 0 or -1, unpack(marks)) .. ARGV[2], 'PX', life)
    if once ~= '' then call('SET', P .. 'k' .. string.sub(once, 1, 16), name, 'PX', life) end
    call('ZADD', P .. 'o', expires, name)
    open = open + 1
    if first == 0 or expires < first then first = expires end
    save_head(open == 1)
    for k = 2, #KEYS do
      if groups[k] then answer = answer .. put('<H', k) .. save_group(k) end
    end
  end
  return put('<BddddBc0', 10, micros, latest, born, expires, #name, name) .. answer
until true
