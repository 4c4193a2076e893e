-- KEYS[1] is the tenant's head; every other key is it and a suffix, so all are in
-- one slot. ARGV[1] is packed (flat.go): the instant in microseconds (0: this
-- server's clock), when ledgers that may have been used since were last seen
-- (ms), whether the books tell of windows, whether the last of ARGV are windows
-- that they told of, what to do; and then what the script at hand says.
local call, put, take, floor, rep = redis.call, struct.pack, struct.unpack, math.floor, string.rep
local P, ask = KEYS[1], ARGV[1]
local micros, spent_since, loads, told, what, body = take('<ddBBB', ask)
if micros == 0 then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
end

-- The head: the latest instant seen (ms), when the first open reservation runs
-- out (µs, 0: none), open reservations, since when nothing was lost (ms), and when
-- the lives of the head and of the queue were last renewed (ms).
local raw = call('MGET', unpack(KEYS))
local read = floor(micros / 1000)
local latest, first, open, born, renewed, seen = read, 0, 0, read, 0, 0
if raw[1] then
  latest, first, open, born, renewed = take('<ddddd', raw[1])
  seen = latest
  if latest < read then latest = read end
end
local behind = latest - read

-- save_head writes the head, to live for eight days; the queue lives for four
-- hours. queued: something joined a queue that may be new.
local function save_head(queued)
  local life = latest - renewed > 3600000 or latest < renewed
  if life then renewed = latest end
  local packed = put('<ddddd', latest, first, open, born, renewed)
  if life then call('SET', P, packed, 'PX', '691200000') else call('SET', P, packed, 'KEEPTTL') end
  if life or queued then call('PEXPIRE', P .. 'o', '14400000') end
  if life then call('PEXPIRE', P .. 'g', '3456000000') end
end
