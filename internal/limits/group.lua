-- Ledgers out of a group's value (value.lua), and back. A ledger is a table of its
-- kind and its numbers, without gaps; a group one of its ledgers by their fields,
-- which it lists in order, and of u and x, the two instants.
local keys, groups, dirty = KEYS, {}, {}
local own_numbers = { 7, 5, 5, 8, 3 }

local function group(i)
  local g = groups[i]
  if g then return g end
  g = { u = 0, x = 0 }
  groups[i] = g
  local s = raw[i]
  if not s then return g end
  local count, length, at
  count, length, g.u, g.x, at = take('<HHdd', s)
  local numbers = at
  at = at + 88 * count
  local more = at + length
  for k = 1, count do
    local field, kind, place
    field, kind, place, at = take('<Bc0BH', s, at)
    local l, n = { kind, take('<ddddddddddd', s, numbers + 88 * (place - 1)) }, own_numbers[kind]
    local follow = l[12]
    if kind == 1 and l[11] > 0 then n = 10 end
    for j = #l, n + 2, -1 do l[j] = nil end
    if follow > 0 then
      local rest = { take('<' .. rep('d', follow), s, more) }
      for j = 1, follow do l[n + 1 + j] = rest[j] end
      more = more + 8 * follow
    end
    g[k], g[field] = field, l
  end
  return g
end

local function own(g, field, l)
  if not g[field] then g[#g + 1] = field end
  g[field] = l
end

-- says is until when a ledger says something: a full bucket says nothing, a window
-- that slides lasts as long as it is wide, and one of the calendar outlives its
-- end, so that the next one is known to be new.
local function says(l)
  local kind = l[1]
  if kind == 1 then return l[3] == 0 and latest or latest + (l[4] * grain - l[5]) / l[3] end
  if kind == 4 then return l[9] + 129600000 end
  return kind == 5 and 0 or latest + (kind == 2 and 61000 or 289 * 300000)
end

local function save_group(i)
  local g = groups[i]
  local need, directory, numbers, more = g.u, {}, {}, {}
  for k = 1, #g do
    local field = g[k]
    local l = g[field]
    local kind, n, last = l[1], #l - 1, says(l)
    if last > need then need = last end
    local most = kind == 1 and 10 or own_numbers[kind]
    local follow = n > most and n - most or 0
    local own_part = { unpack(l, 2, n + 1 - follow) }
    for j = #own_part + 1, 10 do own_part[j] = 0 end
    own_part[11] = follow
    directory[k] = put('<Bc0BH', #field, field, kind, k)
    numbers[k] = put('<ddddddddddd', unpack(own_part))
    if follow > 0 then more[#more + 1] = put('<' .. rep('d', follow), unpack(l, most + 2)) end
  end
  directory = table.concat(directory)
  return save_value(keys[i], #g, #directory, g.u, g.x, need, table.concat(numbers) .. directory .. table.concat(more))
end
