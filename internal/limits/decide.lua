-- Reserve, a dry run, a look: A is 5 what to do (0 reserve, 1 dry run, 2 look), 6
-- the plan's charges, 7 those of each candidate, 8 what to keep: id (empty: one is
-- made of the ten random bytes that follow), random, time to live (µs), estimate,
-- requests, model, end user, forget, definitions, how many may be open, the
-- candidates' models, the process, key and body of a request that may come
-- again; and 9 what others ask for before charges: the candidate's
-- number (0: the plan's), the place, whole and pico.
local what, plan, candidates, keep = A[5], A[6], A[7], A[8]

if what == 0 and keep[13] ~= '' then
  local name = call('GET', P .. 'k' .. string.sub(keep[13], 1, 16))
  local packed = name and call('GET', P .. 'r' .. name)
  local r = packed and unpack_(packed)
  if r and r[1] ~= 4 and not (r[1] >= 2 and r[18] <= micros) then
    if r[20] ~= keep[13] then return answer({ 3 }) end
    return answer({ 2, micros, latest, name, r, cold().tell(r, false) })
  end
end

if what == 0 and keep[1] ~= '' then
  local packed = call('GET', P .. 'r' .. keep[1])
  local r = packed and unpack_(packed)
  if r and not (r[1] >= 2 and r[18] <= micros) then
    if r[1] ~= 0 or r[4] ~= keep[4] or r[5] ~= keep[5] or r[6] ~= keep[6] or r[13] > 0 then return answer({ 3 }) end
    local t = cold().tell(r, false)
    return answer({ 2, micros, latest, keep[1], r, t })
  end
end

for _, a in ipairs(A[9] or {}) do
  local e = (a[1] == 0 and plan or candidates[a[1]])[a[2]]
  e.ahead, e.ahead_pico = a[3], a[4]
end

local refuses, ever, wait, ready = judge(plan)
local chosen, full, ever2, wait2, ready2 = choose(candidates)
if not (ready and ready2) then return cold().needs() end

local admitted = not refuses and not full
local id, expires = '', 0
if admitted and what == 0 then
  if head[3] >= keep[10] then return answer({ 4 }) end
  id, expires = keep[1], micros + keep[3]
  if id == '' then id = struct.pack('>I6', read) .. keep[2] end
  local r = { 0, micros, expires, keep[4], keep[5], keep[6], keep[11][chosen] or '', keep[7], keep[8], 0, '', 0, 0, '', chosen - 1, keep[9], {}, expires + 3600000000, keep[12], keep[13] }
  local until_ms = floor(expires / 1000) + 1
  take(r, plan, '', until_ms)
  if chosen > 0 then take(r, candidates[chosen], r[7], until_ms) end
  put(id, r)
  call('ZADD', P .. 'o', expires, id)
  head[3] = head[3] + 1
  if head[2] == 0 or expires < head[2] then head[2] = expires end
  if latest - head[5] > 3600000 or latest < head[5] then
    head[5] = latest
    call('PEXPIRE', P .. 'o', 14400000)
  end
end
return answer({ 0, micros, latest, admitted and 1 or 0, chosen, refuses and 1 or 0, ever and 1 or 0, wait, full and 1 or 0, ever2 and 1 or 0, wait2,
  id, expires, states(plan), chosen > 0 and states(candidates[chosen]) or {}, head[4] })
