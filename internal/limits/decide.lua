local plan, candidates, from = charges(listed)

-- A call that may come again, or brings its own id, may be there.
local function standing(s)
  local r = s and open_record(s)
  if r and not (r[1] >= 2 and r[18] <= micros) then return r end
end

local function again(name, s, r) return answer(2, put('<Bc0', #name, name) .. told_record(s) .. tell(r)) end

if what == 0 and once ~= '' and came then
  local s = call('GET', P .. 'r' .. came)
  local r = standing(s)
  if r and r[1] ~= 4 then
    if r[20] ~= once then return answer(3) end
    return again(came, s, r)
  end
end

if what == 0 and mine then
  local s = call('GET', P .. 'r' .. id)
  local r = standing(s)
  if r then
    local asks = open_record(put('<BBBBHdddddd', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) .. string.sub(ARGV[2], texts_from))
    if r[1] ~= 0 or r[4] ~= asks[4] or r[5] ~= requests or r[6] ~= asks[6] or r[13] > 0 then return answer(3) end
    return again(id, s, r)
  end
end

if waits == 1 then
  local count
  count, from = take('<H', ask, from)
  for _ = 1, count do
    local list, i, ahead, pico
    list, i, ahead, pico, from = take('<HHdd', ask, from)
    local e = (list == 0 and plan or candidates[list])[i]
    e.ahead, e.ahead_pico = ahead, pico
  end
end

local refuses, ever, wait, ready = judge(plan)
local chosen, full, ever2, wait2, ready2 = choose(candidates)
if not (ready and ready2) then return needs(stale, missing) end

local admitted, name, expires = not refuses and not full, '', 0
if admitted and what == 0 then
  if open >= most or crowded(plan, candidates[chosen]) then return answer(4) end
  name, expires = id, micros + ttl
  if name == '' then name = put('>I6', read) .. tail end
  local own_part, count = ARGV[2], plan_count
  if chosen > 0 then count = count + #candidates[chosen] end
  if chosen > 1 then own_part = string.sub(own_part, 1, plan_holds) .. ARGV[1 + chosen] .. string.sub(own_part, texts_from) end
  local r = open_record(put('<BBBBHdddddd', 0, forget, 0, 0, count, micros, expires, expires + 3600000000, requests, 0, chosen - 1)
    .. rep('\0', 24 * count) .. own_part)
  local holds, until_ms = r[17], floor(expires / 1000) + 1
  r[17] = {}
  charge(r, plan, holds, until_ms)
  if chosen > 0 then
    for i = 1, plan_count do table.remove(holds, 1) end
    charge(r, candidates[chosen], holds, until_ms)
  end
  keep(name, r)
  queue(name, expires)
  open = open + 1
  if first == 0 or expires < first then first = expires end
end
return answer(0, put('<BHBBdBBddBc0d', admitted and 1 or 0, chosen, refuses and 1 or 0, ever and 1 or 0, wait, full and 1 or 0, ever2 and 1 or 0, wait2,
  expires, #name, name, born) .. states(plan) .. (chosen > 0 and states(candidates[chosen]) or put('<H', 0)))
