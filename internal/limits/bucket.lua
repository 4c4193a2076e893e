-- Buckets, as bucket.go and history.go state them. A ledger is a table: 1 its
-- kind, 2 which making of it, and then of a bucket 3 rate, 4 ceiling, 5 level, 6
-- last, 7 held, 8 turn, and three numbers for each of its rooms: since, least,
-- calls. Every number stays below 2^53, so doubles are exact.
local grain, never = 60000, -1
local rooms

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
  if b[9] then rooms().rises(b) else b[8] = b[8] + 1 end
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
  if n + 3 > 8 + 3 * 12 then rooms().crowded(b) end
end

-- rooms are the functions that change more than the last room, made when one is
-- needed: a script makes its functions anew each time that it runs.
local made
rooms = function()
  if made then return made end

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
  local function rises(b)
    b[8] = b[8] + 1
    local n = #b
    if n == 8 then return end
    local headroom = b[4] * grain - b[5]
    if headroom == 0 then
      for i = n, 9, -1 do b[i] = nil end
      return
    end
    for i = n - 2, 9, -3 do
      if b[i + 1] <= headroom then break end
      b[i + 1] = headroom
    end
    unite(b)
  end

  -- crowded makes the two neighbours that differ least one.
  local function crowded(b)
    local best = 12
    for i = 15, #b - 5, 3 do
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

  made = { rises = rises, crowded = crowded, forgive = forgive, spend = spend, release = release, give_back = give_back }
  return made
end

-- sums: whole units, and pico-units from 0 to 999,999
local function sum(n, p)
  if p >= 1000000 then return n + 1, p - 1000000 end
  if p < 0 then return n - 1, p + 1000000 end
  return n, p
end
