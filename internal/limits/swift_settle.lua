-- What follows a reservation: to do, and then its id and what is told of it.
local id, rest = take('<Bc0', ask, body)

-- The usual end of a call: it is open, every ledger that it holds is as it was made,
-- none slides or falls too low, and nothing else is to be done first. To do is 1,
-- then as what it ends, whether the request is given back, the figures, and the
-- process that tells of it from now on. KEYS[2] is the reservation. What is not usual breaks off, and nothing has changed. The answer
-- is the reservation as it was, and the groups of its holds, in their order, to be
-- brought up to date.
repeat
  local s = raw[2]
  if what ~= 1 or not s or told == 1 or first ~= 0 and first <= micros then break end
  local phase, forget, late, _, n, at_micros, expires, till, requests, moves, candidate, marks = take('<BBBBHdddddd', s)
  if phase ~= 0 then break end
  local as, back, figures, owner = take('<BBBc0Bc0', ask, rest)
  local f = { take('<' .. rep('d', #figures / 8), figures) }
  for i = #f, 10 do f[i] = 0 end -- the first of these is not a figure

  -- the holds, twelve members each; their groups
  local holds, suffixes, at = {}, {}, marks + 24 * n
  for i = 1, n do
    local h = { take('<Bc0Bc0BBddddHHHc0', s, at) }
    at = h[12]
    if h[4] == 7 then
      h[7], h[8], h[9], h[10], h[11], at = take('<ddddd', s, at)
    end
    if h[1] == '' then h[1] = holds[i - 1][1] end
    if not suffixes[h[1]] then
      suffixes[#suffixes + 1] = h[1]
      suffixes[h[1]] = #suffixes
    end
    holds[i] = h
  end
  local names, values, crowded, usual = {}, {}, {}, true
  for i = 1, #suffixes do names[i] = P .. suffixes[i] end
  local groups_raw = n > 0 and call('MGET', unpack(names)) or {}
  for i = 1, #names do
    if not groups_raw[i] then
      usual = false
      break
    end
    values[i], crowded[i] = open_value(groups_raw[i]), false
    values[i].length, values[i][2] = values[i][2], 0
  end

  if back == 1 then requests = 0 end
  for i = 1, n do
    if not usual then break end
    local h = holds[i]
    local flags, counts, amount, pico = h[3], h[4], h[5], h[6]
    if flags % 4 < 2 then -- it has not ended
      local k = suffixes[h[1]]
      local v, b = values[k], nil
      local directory = v[5 + 11 * v[1]]
      local _, e = string.find(groups_raw[k], h[2], directory, true)
      if e and e < directory + v.length then b = 11 * take('<H', groups_raw[k], e + 1) - 6 end
      local mark, to, made = take('<ddd', s, marks + 24 * (i - 1))
      if not b or v[b] ~= made then
        usual = false
        break
      end
      local cost, more = 0, 0
      if counts == 1 then
        cost = requests
      elseif counts == 2 then
        cost = f[1]
      elseif counts == 3 then
        cost = f[2] + f[3] + f[4] + f[5] + f[6]
      elseif counts == 4 then
        cost = 1
      elseif counts == 5 then
        cost, more = f[7], f[8]
      elseif counts == 6 then
        cost, more = f[9], f[10]
      else
        cost = floor((f[2] * h[7] + f[3] * h[8] + f[4] * h[9] + f[5] * h[10] + f[6] * h[11] + 999) / 1000)
      end
      local kind, need = string.byte(h[2], -1), 0
      if kind == 1 then
        local l = crowded[k] and crowded[k][b] or bring(groups_raw[k], v, b)
        if l then
          crowded[k] = crowded[k] or {}
          crowded[k][b] = l
          buckets().settle(l, mark, amount, cost, true)
          v[b + 3] = l[5]
        else
          local given = amount - cost
          if given < 0 then
            v[b + 3] = v[b + 3] + given * grain
            usual = v[b + 3] >= -v[b + 2] * grain
          elseif given > 0 then
            given = given * grain
            if v[b + 9] == 0 or v[b + 7] > mark then given = 0 elseif given > v[b + 8] then given = v[b + 8] end
            v[b + 3], v[b + 6], v[b + 8] = v[b + 3] + given, v[b + 6] + 1, v[b + 8] - given
          end
          v[b + 5] = v[b + 5] - amount
          if v[b + 9] > 0 and v[b + 7] <= mark then
            v[b + 9] = v[b + 9] - 1
            if v[b + 9] == 0 then v[b + 7], v[b + 8] = 0, 0 end
          end
        end
        if v[b + 1] > 0 then need = latest + (v[b + 2] * grain - v[b + 3]) / v[b + 1] end
      elseif kind == 4 then
        if v[b + 6] == mark then
          v[b + 2], v[b + 3] = sum(v[b + 2] + cost - amount, v[b + 3] + more - pico)
          v[b + 4], v[b + 5] = sum(v[b + 4] - amount, v[b + 5] - pico)
        end
        need = v[b + 7] + 129600000
      elseif kind == 5 then
        v[b + 2] = v[b + 2] - amount
      else
        usual = false
      end
      if v[2] < need then v[2] = need end
    end
  end
  if not usual then break end

  call('ZREM', P .. 'o', id)
  open = open - 1
  if forget == 1 then
    call('DEL', KEYS[2])
  else
    if till < micros + 60000000 then till = micros + 60000000 end
    local life = floor((till - micros) / 1000) + 60000
    local _, moved, estimate, model, user, _, once, defined = take('<Hc0Hc0Hc0Hc0Hc0Hc0Hc0', s, at)
    call('SET', KEYS[2], put('<BBBBHdddddd', as, forget, late, back, n, at_micros, expires, till, take('<d', s, 31), moves, candidate)
      .. string.sub(s, 55, at - 1)
      .. put('<Hc0Hc0Hc0Hc0Hc0Hc0Hc0', #figures, figures, #moved, moved, #estimate, estimate, #model, model, #user, user, #owner, owner, #once, once)
      .. string.sub(s, defined), 'PX', life)
    if once ~= '' and as ~= 4 then call('SET', P .. 'k' .. string.sub(once, 1, 16), id, 'PX', life) end
  end
  save_head(false)
  local answer = { put('<BdddI', 10, micros, latest, born, #s), s }
  for i = 1, #names do answer[i + 2] = close_value(names[i], groups_raw[i], values[i], 0, crowded[i]) end
  return answer
until true
