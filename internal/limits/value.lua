-- A group is the ledgers of one scope (of one model, of one end user). Its value is
-- how many there are, how long its directory is, until when a reservation needs it,
-- until when it lives at least (ms); eleven numbers of each ledger; the directory: of
-- each the length of its field, the field, its kind, its place; and what numbers some
-- have more.
--
-- The numbers begin with which making of the ledger it is. Then of a bucket rate,
-- ceiling, level, last, held, turn, its first room (since, least, calls; no calls:
-- there is none); of a gauge amount, used; of a calendar window amount, used
-- (whole, pico), held (whole, pico), its start and end; of a sliding window amount,
-- used, held, the current sub-bucket. The last of the eleven is how many it has more:
-- a bucket's other rooms; the sub-buckets that were charged, number and amount.
local grain = 60000

-- save_value writes a group, of which something is needed until then: what its value
-- begins with, and the rest of it. Its life is renewed rarely, and is noted among
-- those of all groups of the tenant. It tells the value.
local function save_value(key, count, length, u, x, need, rest)
  local renew = need + 60000 > x
  if not renew then
    rest = put('<HHdd', count, length, u, x) .. rest
    call('SET', key, rest, 'KEEPTTL')
    return rest
  end
  x = need + 360000
  rest = put('<HHdd', count, length, u, x) .. rest
  local life = x - latest + 60000
  call('ZADD', P .. 'g', x, string.sub(key, #P + 1))
  call('SET', key, rest, 'PX', floor(life > 60000 and life or 60000))
  return rest
end

-- bring brings the bucket at b of a group's numbers v up to date; one that has more
-- than one room becomes a ledger of bucket.lua, which it tells.
local buckets
local function bring(s, v, b)
  if v[b + 10] > 0 then
    local l = buckets().crowd(s, v, b)
    buckets().refill(l)
    v[b + 3] = l[5]
    return l
  end
  local e = latest - v[b + 4]
  if e <= 0 then return end
  v[b + 4] = latest
  local rate, full = v[b + 1], v[b + 2] * grain
  local missing, credit = full - v[b + 3], e * rate
  if rate == 0 or missing == 0 and v[b + 9] == 0 then return end
  v[b + 6] = v[b + 6] + 1
  if credit >= missing then
    v[b + 3], v[b + 7], v[b + 8], v[b + 9] = full, 0, 0, 0
  else
    v[b + 3] = v[b + 3] + credit
    if v[b + 8] > missing - credit then v[b + 8] = missing - credit end
  end
end

-- open_value unpacks a group's value, up to its directory: four numbers of its own,
-- those of its ledgers, and where the directory begins.
local function open_value(s) return { take('<HHdd' .. rep('d', 11 * take('<H', s)), s) } end

-- close_value writes it again, with what is needed until then in the place of the
-- directory's length; crowded are ledgers of bucket.lua by their places.
local function close_value(key, s, v, u, crowded)
  local count, length = take('<HH', s)
  local rest
  if crowded then
    rest = buckets().rest_of(s, v, crowded)
  else
    rest = put('<' .. rep('d', 11 * count), unpack(v, 5, 4 + 11 * count)) .. string.sub(s, 21 + 88 * count)
  end
  return save_value(key, count, length, u > v[3] and u or v[3], v[4], v[2] > u and v[2] or u, rest)
end
