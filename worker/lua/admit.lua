-- Record an alert before anything is published. One call an alert, whoever saw it.
-- ARGV: 3 mode (see|requeue) 4 alert JSON 5 status 6 updated ms ('' unknown) 7 queue 8 fresh investigation id
--       9 skip reason ('' to queue) 10 instructions 11 grace ms 12 retention s 13 source 14 fingerprint 15 runs cap 16 via 17 severity
--       18 plan (JSON; '' for an alert that is on its own; see `Plan` in worker/triage.py)
-- Returns {verdict, state, reason, generation, queue, late (1: its lead is done already)}; verdict: new known updated reopened requeued joined refused,
-- or {undecided, view}: work would begin, and the plan was made from another version than the store has now
local mode, alert, status, updated, queue, investigation = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local skip, instructions = ARGV[9], ARGV[10]
local grace, retention, source, fingerprint, cap, via = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13], ARGV[14], tonumber(ARGV[15]), ARGV[16]
local now = now_ms()
local late = 0
local plan = ARGV[18] ~= '' and cjson.decode(ARGV[18]) or nil

-- Two alerts that are admitted at the same moment must not both become leads: the second one is decided on afresh.
local function outdated()
  return plan and plan.version ~= (redis.call('HGET', prefix .. 'grouping', source) or '0')
end

local function undecided() return { 'undecided', view(plan, source, fingerprint) } end

local function begin_group()
  redis.call('HSET', hash, 'scope', plan.scope, 'group_first', plan.at, 'group_last', plan.at, 'group_size', 1)
  redis.call('DEL', prefix .. 'followers:' .. key, prefix .. 'tally:' .. key)  -- of an earlier episode
  if plan.scope == '' then return end
  local index = prefix .. 'groups:' .. source .. ':' .. plan.scope
  redis.call('ZADD', index, plan.at, key)
  redis.call('ZREMRANGEBYRANK', index, 0, -5)
  redis.call('EXPIRE', index, plan.keep)
end

-- What would have been an investigation counts towards a storm, whatever became of it.
local function count_start()
  if not plan.counts then return end
  local started = prefix .. 'started:' .. source
  redis.call('ZADD', started, plan.at, key)
  redis.call('ZREMRANGEBYRANK', started, 0, -(plan.storm_cap + 1))
  redis.call('EXPIRE', started, plan.keep)
end

local function place()
  if skip ~= '' then
    redis.call('HSET', hash, 'skip_until', plan and plan.skip_until or 0)
    return move('skipped', skip, nil, retention)
  end
  if not plan then return move('queued', via, now + grace, retention) end
  redis.call('HINCRBY', prefix .. 'grouping', source, 1)
  count_start()
  if plan.lead == '' then
    begin_group()
    if plan.hold > 0 then redis.call('HSET', hash, 'unpublished', 1) end
    return move('queued', plan.reason, now + (plan.hold > 0 and plan.hold or grace), retention)
  end
  redis.call('HSET', hash, 'follows', plan.follows)
  local look, done = join(plan.lead, plan.at, plan.patience, retention, plan.label)
  late = done and 1 or 0
  move('grouped', plan.reason, look, retention)
end

local function answer(verdict)
  local record = redis.call('HMGET', hash, 'state', 'reason', 'generation', 'queue')
  return { verdict, record[1], record[2], tonumber(record[3]), record[4], late }
end

local function start(verdict, generation)
  redis.call('HSET', hash, 'alert', alert, 'status', status, 'seen_updated_ms', updated, 'queue', queue,
    'generation', generation, 'attempts', 0, 'write_attempts', 0, 'fence', '', 'lease_until', 0,
    'investigation', investigation, 'instructions', instructions, 'via', via, 'started_ms', 0)
  redis.call('HDEL', hash, 'outcome', 'confidence', 'settle', 'promoted', 'unpublished', 'skip_until', 'why')
  redis.call('HSET', hash, 'severity', ARGV[17], 'critical', ARGV[17] == 'critical' and 1 or 0)
  if plan then redis.call('HSET', hash, 'why', plan.why) end
  leave()
  place()
  return answer(verdict)
end

local state = redis.call('HGET', hash, 'state')
if not state then
  if outdated() then return undecided() end
  redis.call('HSET', hash, 'key', key, 'source', source, 'first_seen_ms', now, 'fingerprint', fingerprint)
  if fingerprint ~= '' then
    local family = prefix .. 'fingerprint:' .. source .. ':' .. fingerprint
    redis.call('ZADD', family, plan and plan.at or now, key)
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
local back = newer and known[1] == 'resolved' and not busy and state ~= 'grouped'
-- What was skipped for a time only, such as a maintenance window, and is still open after it.
local until_ms = tonumber(redis.call('HGET', hash, 'skip_until') or 0)
local waited = state == 'skipped' and until_ms > 0 and now >= until_ms
if (back or waited) and status ~= 'resolved' then
  if generation >= cap then return answer('refused') end
  if outdated() then return undecided() end
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
