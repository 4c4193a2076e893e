-- Buckets, as bucket.go and history.go state them. A ledger is a table: 1 its
-- kind, 2 which making of it, and then of a bucket 3 rate, 4 ceiling, 5 level, 6
-- last, 7 held, 8 turn, and three numbers for each of its rooms: since, least,
-- calls. A first room since -1, which gives nothing, says that a lowered limit
-- forgave of what was used since the bucket was full last. Every number stays below
-- 2^53, so doubles are exact.
--
-- buckets makes the functions, when one is needed: a script makes its functions
-- anew each time that it runs.
local made

buckets = function()
  if made then return made end
  local rises, crowded

  local function refill(b)
    local e = latest - b[6]
    if e <= 0 then return end
    b[6] = latest
    local rate = b[3]
    if rate == 0 then return end
    local full = b[4] * grain
    local missing, credit = full - b[5], e * rate
    if missing == 0 and not b[9] then return end
    if credit >= missing then b[5] = full else b[5] = b[5] + credit end
    if b[9] then rises(b) else b[8] = b[8] + 1 end
  end

  local function note(b)
    local headroom = b[4] * grain - b[5]
    if not b[9] then
      b[9], b[10], b[11] = b[8], headroom, 1
      return
    end
    local n = #b
    if b[n - 2] == b[8] then
      b[n - 1], b[n] = headroom, b[n] + 1
      return
    end
    b[n + 1], b[n + 2], b[n + 3] = b[8], headroom, 1
    if n + 3 > 8 + 3 * 12 + (b[9] == -1 and 3 or 0) then crowded(b) end
  end

  local function cut(b, i)
    local n = #b
    for j = i, n - 3 do b[j] = b[j + 3] end
    b[n], b[n - 1], b[n - 2] = nil, nil, nil
  end

  local function merge(b, i)
    b[i - 1] = b[i - 1] + b[i + 2]
    cut(b, i)
  end

  local function unite(b)
    for i = #b - 2, 12, -3 do
      if b[i + 1] == b[i - 2] then merge(b, i) end
    end
  end

  -- rises notes that the level came up. Rooms of a full bucket give nothing back,
  -- no more than none would.
  function rises(b)
    b[8] = b[8] + 1
    local n = #b
    if n == 8 then return end
    local headroom = b[4] * grain - b[5]
    if headroom == 0 then
      for i = n, b[4] == 0 and b[9] == -1 and 12 or 9, -1 do b[i] = nil end
      return
    end
    for i = n - 2, 9, -3 do
      if b[i + 1] <= headroom then break end
      b[i + 1] = headroom
    end
    unite(b)
  end

  -- crowded makes the two neighbours that differ least one.
  function crowded(b)
    local best = b[9] == -1 and 15 or 12
    for i = best + 3, #b - 5, 3 do
      if b[i + 1] - b[i - 2] < b[best + 1] - b[best - 2] then best = i end
    end
    merge(b, best)
  end

  local function forgive(b)
    local least = -b[4] * grain
    if b[5] < least then
      b[5] = least
      rises(b)
    end
  end

  -- resize takes over a changed limit, as bucket.go states it.
  local function resize(b, rate, ceiling)
    local used, level, forgiven = b[4] * grain - b[5], b[5], b[9] == -1
    b[3], b[4], b[5] = rate, ceiling, ceiling * grain - used
    if forgiven and b[5] > level then b[5] = level end
    if b[5] < -ceiling * grain then
      forgive(b)
      if not forgiven then
        for _, n in ipairs({ 1099511627776, 0, -1 }) do table.insert(b, 9, n) end
      end
    end
  end

  local function spend(b, cost)
    local most = 3 * b[4] + 1
    if cost > most then cost = most end
    b[5] = b[5] - cost * grain
    forgive(b)
  end

  local function find(b, since)
    local i = #b - 2
    while i >= 9 and b[i] > since do i = i - 3 end
    return i >= 9 and i
  end

  local function release(b, since)
    local i = find(b, since)
    if not i then return end
    b[i + 2] = b[i + 2] - 1
    if b[i + 2] <= 0 then cut(b, i) end
  end

  local function give_back(b, since, want)
    local i = find(b, since)
    if not i then return 0 end
    local given = b[i + 1]
    if want < given then given = want end
    for j = i, #b - 2, 3 do b[j + 1] = b[j + 1] - given end
    for j = 9, i - 3, 3 do
      if b[j + 1] > b[i + 1] then b[j + 1] = b[i + 1] end
    end
    unite(b)
    return given
  end

  -- settle replaces what was charged at mark by cost.
  local function settle(b, mark, amount, cost, was_open)
    refill(b)
    if cost > amount then
      spend(b, cost - amount)
    elseif cost < amount then
      b[5] = b[5] + give_back(b, mark, (amount - cost) * grain)
      b[8] = b[8] + 1
      if b[9] == -1 and b[5] == b[4] * grain then rises(b) end
    end
    if was_open then b[7] = b[7] - amount end
    release(b, mark)
  end

  -- crowd is the ledger at b of a group's numbers v (value.lua); was is how many
  -- numbers it has more.
  local function crowd(s, v, b)
    local l = { 1, unpack(v, b, b + 9) }
    local count, length = take('<HH', s)
    local more = 21 + 88 * count + length
    for j = 15, b, 11 do more = more + 8 * v[j] end
    for j, n in ipairs({ take('<' .. rep('d', v[b + 10]), s, more) }) do l[11 + j] = n end
    l[#l], l.was = nil, v[b + 10]
    return l
  end

  -- rest_of is the rest of a group's value, of which some ledgers are crowded, by
  -- their places among its numbers.
  local function rest_of(s, v, crowded)
    local count, length = take('<HH', s)
    local at, more = 21 + 88 * count, {}
    local from = at + length
    for j = 1, count do
      local b = 11 * j - 6
      local l, follow = crowded[b], v[b + 10]
      if l then
        for f = 0, 9 do v[b + f] = l[f + 2] or 0 end
        v[b + 10], follow = #l > 11 and #l - 11 or 0, l.was
        if v[b + 10] > 0 then more[#more + 1] = put('<' .. rep('d', v[b + 10]), unpack(l, 12)) end
      else
        more[#more + 1] = string.sub(s, from, from + 8 * follow - 1)
      end
      from = from + 8 * follow
    end
    return put('<' .. rep('d', 11 * count), unpack(v, 5, 4 + 11 * count)) .. string.sub(s, at, at + length - 1) .. table.concat(more)
  end

  made = {
    crowd = crowd, rest_of = rest_of, refill = refill, note = note, resize = resize, spend = spend, settle = settle,
  }
  return made
end

-- sums: whole units, and pico-units from 0 to 999,999
local function sum(n, p)
  if p >= 1000000 then return n + 1, p - 1000000 end
  if p < 0 then return n - 1, p + 1000000 end
  return n, p
end
