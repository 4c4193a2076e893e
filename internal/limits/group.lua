-- A group is the ledgers of one scope (of one model, of one end user): a table of
-- them by their fields, which it lists in order; u, until when a reservation needs
-- it, and x, until when it lives at least (ms). Its value is both, how many
-- ledgers there are, and of each its kind, how many numbers it is, its field and
-- its numbers.
--
-- Numbers of a ledger, beyond those of bucket.lua: of a gauge 3 amount, 4 used; of
-- a calendar window 3 amount, 4 and 5 used (whole, pico), 6 and 7 held, 8 and 9
-- its start and end; of a sliding window 3 amount, 4 used, 5 held, 6 the current
-- sub-bucket, then those that were charged: number, amount.
local keys, groups, dirty = KEYS, {}, {}

local function group(i)
  local g = groups[i]
  if g then return g end
  g = { u = 0, x = 0 }
  groups[i] = g
  local s = raw[i]
  if not s then return g end
  local count, at, kind, n, field
  g.u, g.x, count, at = take('<ddH', s)
  for k = 1, count do
    kind, n, field, at = take('<BHBc0', s, at)
    local l = { kind, take(n == 7 and '<ddddddd' or '<' .. rep('d', n), s, at) }
    at = l[n + 2]
    l[n + 2] = nil
    g[k], g[field] = field, l
  end
  return g
end

local function own(g, field, l)
  if not g[field] then g[#g + 1] = field end
  g[field] = l
end

-- says is how long a ledger says something: a full bucket says nothing, a window
-- that slides lasts as long as it is wide, and one of the calendar outlives its
-- end, so that the next one is known to be new.
local function says(l)
  local kind = l[1]
  if kind == 1 then return l[3] == 0 and latest or latest + (l[4] * grain - l[5]) / l[3] end
  if kind == 4 then return l[9] + 129600000 end
  return kind == 5 and 0 or latest + (kind == 2 and 61000 or 289 * 300000)
end

-- save_group writes a group that has changed, and tells its value. Its life is
-- renewed rarely, and is noted among those of all groups of the tenant.
local function save_group(i)
  local g = groups[i]
  local s, need = '', g.u
  for k = 1, #g do
    local field = g[k]
    local l = g[field]
    local last, n = says(l), #l - 1
    if last > need then need = last end
    s = s .. put(n == 7 and '<BHBc0ddddddd' or '<BHBc0' .. rep('d', n), l[1], n, #field, field, unpack(l, 2))
  end
  local renew = need + 60000 > g.x
  if renew then g.x = need + 360000 end
  s = put('<ddH', g.u, g.x, #g) .. s
  if renew then
    local life = g.x - latest + 60000
    call('ZADD', P .. 'g', g.x, string.sub(keys[i], #P + 1))
    call('SET', keys[i], s, 'PX', floor(life > 60000 and life or 60000))
  else
    call('SET', keys[i], s, 'KEEPTTL')
  end
  return s
end
