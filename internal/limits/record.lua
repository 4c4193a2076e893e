-- A reservation is a table: 1 phase (0 open, 1 lapsed, 2 expired, 3 settled, 4
-- cancelled), 2 at, 3 expires (µs), 4 estimate, 5 requests, 6 model, 8 end user, 9
-- forget, 10 late, 11 actual, 12 the request was given back, 13 moves, 14 how the
-- last attempt ended, 15 candidate, 16 definitions, 17 holds, 18 when to forget it
-- (µs), 19 the process that tells of its end, 20 the key and the body of a request
-- that may come again.
--
-- A hold: 1 suffix of its group, 2 field, 3 kind, 4 amount, 5 pico, 6 mark, 7 the
-- window's end, 8 which making of its ledger, 9 flags (1 candidate, 2 ended, 4
-- others, 8 old), 10 what it counts (7: tokens, by five weights), 11 and 12 its
-- limit among the definitions, 13 amount and 14 ceiling of the limit, 15 a name or
-- model.
--
-- Its value is its numbers, then 6, 7 and 8 of each hold; then what the process that
-- reserved packs (redis_kept.go): the rest of each hold, whose field is as a group's
-- directory has it; the texts, what it came to first; the definitions.

-- hold reads one; a suffix that is empty is that of the one before.
local function hold(s, at, before)
  local h = {}
  h[1], h[2], h[9], h[10], h[4], h[5], h[13], h[14], h[11], h[12], h[15], at = take('<Bc0Bc0BBddddHHHc0', s, at)
  if h[1] == '' then h[1] = before[1] end
  h[3], h[2] = string.byte(h[2], -1), string.sub(h[2], 2, -2)
  if h[10] == 7 then
    local w = { take('<ddddd', s, at) }
    h[10], at, w[6] = w, w[6], nil
  end
  return h, at
end

local function open_record(s)
  local r, n, at, definitions = {}, nil, nil, {}
  r[1], r[9], r[10], r[12], n, r[2], r[3], r[18], r[5], r[13], r[15], at = take('<BBBBHdddddd', s)
  local marks, holds, count = at, {}, nil
  at = at + 24 * n
  for i = 1, n do
    local h
    h, at = hold(s, at, holds[i - 1])
    h[6], h[7], h[8] = take('<ddd', s, marks + 24 * (i - 1))
    holds[i] = h
  end
  r[11], r[14], r[4], r[6], r[8], r[19], r[20], count, at = take('<Hc0Hc0Hc0Hc0Hc0Hc0Hc0H', s, at)
  for i = 1, count do definitions[i], at = take('<Ic0', s, at) end
  r[16], r[17] = definitions, holds
  return r
end

local function close_record(r)
  local n, list = #r[17], {}
  list[1] = put('<BBBBHdddddd', r[1], r[9], r[10], r[12], n, r[2], r[3], r[18], r[5], r[13], r[15])
  for _, h in ipairs(r[17]) do list[#list + 1] = put('<ddd', h[6], h[7], h[8]) end
  for _, h in ipairs(r[17]) do
    local weights, entry = type(h[10]) == 'table' and h[10], string.char(#h[2]) .. h[2] .. string.char(h[3])
    list[#list + 1] = put('<Bc0Bc0BBddddHHHc0', #h[1], h[1], #entry, entry, h[9], weights and 7 or h[10], h[4], h[5], h[13], h[14], h[11], h[12], #h[15], h[15])
    if weights then list[#list + 1] = put('<ddddd', unpack(weights)) end
  end
  list[#list + 1] = put('<Hc0Hc0Hc0Hc0Hc0Hc0Hc0H', #r[11], r[11], #r[14], r[14], #r[4], r[4], #r[6], r[6], #r[8], r[8], #r[19], r[19], #r[20], r[20], #r[16])
  for _, d in ipairs(r[16]) do list[#list + 1] = put('<Ic0', #d, d) end
  return table.concat(list)
end

-- keep writes a reservation, and tells its value.
local function keep(id, r)
  local life = floor((r[18] - micros) / 1000)
  if r[1] < 3 then life = life + 7200000 end
  if life < 0 then life = 0 end
  local s = close_record(r)
  call('SET', P .. 'r' .. id, s, 'PX', life + 60000)
  if r[20] ~= '' and r[1] ~= 4 then call('SET', P .. 'k' .. string.sub(r[20], 1, 16), id, 'PX', life + 60000) end
  return s
end
