-- Record an alert before anything is published. One call an alert, whoever saw it.
-- ARGV: 3 mode (see|requeue) 4 alert JSON 5 status 6 updated ms ('' unknown) 7 queue 8 fresh investigation id
--       9 skip reason ('' to queue) 10 instructions 11 grace ms 12 retention s 13 source 14 fingerprint 15 runs cap 16 via
-- Returns {verdict, state, reason, generation, queue}; verdict: new known updated reopened requeued joined refused
local mode, alert, status, updated, queue, investigation = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local skip, instructions = ARGV[9], ARGV[10]
local grace, retention, source, fingerprint, cap, via = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13], ARGV[14], tonumber(ARGV[15]), ARGV[16]
local now = now_ms()

local function answer(verdict)
  local record = redis.call('HMGET', hash, 'state', 'reason', 'generation', 'queue')
  return { verdict, record[1], record[2], tonumber(record[3]), record[4] }
end

local function start(verdict, generation)
  redis.call('HSET', hash, 'alert', alert, 'status', status, 'seen_updated_ms', updated, 'queue', queue,
    'generation', generation, 'attempts', 0, 'write_attempts', 0, 'fence', '', 'lease_until', 0,
    'investigation', investigation, 'instructions', instructions, 'via', via, 'started_ms', 0)
  redis.call('HDEL', hash, 'outcome', 'confidence', 'settle')
  if skip ~= '' then move('skipped', skip, nil, retention)
  else move('queued', via, now + grace, retention) end
  return answer(verdict)
end

local state = redis.call('HGET', hash, 'state')
if not state then
  redis.call('HSET', hash, 'key', key, 'source', source, 'first_seen_ms', now, 'fingerprint', fingerprint)
  if fingerprint ~= '' then
    local family = prefix .. 'fingerprint:' .. source .. ':' .. fingerprint
    redis.call('ZADD', family, now, key)
    redis.call('ZREMRANGEBYRANK', family, 0, -51)
    redis.call('EXPIRE', family, retention)
  end
  return start('new', 1)
end

local generation = tonumber(redis.call('HGET', hash, 'generation'))
local busy = state == 'queued' or state == 'investigating'

if mode == 'requeue' then
  local same = instructions == '' or instructions == redis.call('HGET', hash, 'instructions')
  if busy and same then return answer('joined') end
  if state == 'queued' then
    redis.call('HSET', hash, 'instructions', instructions)
    return answer('joined')
  end
  if generation >= cap then return answer('refused') end
  local previous = redis.call('HGET', hash, 'investigation')
  redis.call('HSET', hash, 'previous', previous)
  return start('requeued', generation + 1)
end

local known = redis.call('HMGET', hash, 'status', 'seen_updated_ms')
local newer = updated ~= '' and (known[2] == '' or tonumber(updated) > tonumber(known[2]))
if newer and known[1] == 'resolved' and status ~= 'resolved' and not busy and skip == '' then
  if generation >= cap then return answer('refused') end
  redis.call('HSET', hash, 'previous', redis.call('HGET', hash, 'investigation'))
  return start('reopened', state == 'skipped' and generation or generation + 1)
end
local verdict = 'known'
if newer then
  redis.call('HSET', hash, 'alert', alert, 'status', status, 'seen_updated_ms', updated)
  verdict = 'updated'
end
-- An alert that stays open must not be forgotten, or it would be investigated afresh after the retention.
if redis.call('TTL', hash) > 0 then redis.call('EXPIRE', hash, retention) end
return answer(verdict)
