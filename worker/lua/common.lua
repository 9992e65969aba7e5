-- Shared by every script: time, indexes, audit. Scripts are this file plus their own.
-- ARGV[1] is always the key prefix, ARGV[2] the alert key.
local prefix, key = ARGV[1], ARGV[2]
local hash = prefix .. 'alert:' .. key
local due = prefix .. 'due'

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Move alert `name` to `state`; `at` nil means nothing is owed any more, and the record expires after `retention_s`.
local function move_other(name, state, reason, at, retention_s)
  local now, record, log = now_ms(), prefix .. 'alert:' .. name, prefix .. 'audit:' .. name
  local before = redis.call('HMGET', record, 'state', 'generation')
  if before[1] then redis.call('ZREM', prefix .. 'state:' .. before[1], name) end
  redis.call('ZADD', prefix .. 'state:' .. state, now, name)
  redis.call('HSET', record, 'state', state, 'reason', reason, 'updated_ms', now)
  local line = { at = now, state = state, reason = reason, generation = tonumber(before[2]) }
  redis.call('RPUSH', log, cjson.encode(line))
  redis.call('LTRIM', log, -200, -1)
  if at then
    redis.call('ZADD', due, at, name)
    redis.call('PERSIST', record)
    redis.call('PERSIST', log)
  else
    redis.call('ZREM', due, name)
    redis.call('EXPIRE', record, retention_s)
    redis.call('EXPIRE', log, retention_s)
  end
end

local function move(state, reason, at, retention_s)
  move_other(key, state, reason, at, retention_s)
end

local function settled(state) return not state or state == 'written' or state == 'skipped' or state == 'failed' end

-- Follow `lead`. Returns when that is owed a look, and whether the lead is done: then now, else after `patience` ms.
local function join(lead, at, patience, retention_s, label)
  local other, now = prefix .. 'alert:' .. lead, now_ms()
  local state = redis.call('HGET', other, 'state')
  redis.call('HSET', hash, 'lead', lead)
  redis.call('ZADD', prefix .. 'followers:' .. lead, now, key)
  redis.call('EXPIRE', prefix .. 'followers:' .. lead, retention_s)
  if state then -- a lead that has expired must not come back as a ghost
    redis.call('HINCRBY', other, 'group_size', 1)
    local last = tonumber(redis.call('HGET', other, 'group_last') or 0)
    if at > last and last > 0 then redis.call('HSET', other, 'group_last', at) end
    if label ~= '' then
      local tally = prefix .. 'tally:' .. lead
      if redis.call('HLEN', tally) >= 50 and redis.call('HEXISTS', tally, label) == 0 then label = 'others' end
      redis.call('HINCRBY', tally, label, 1)
      redis.call('EXPIRE', tally, retention_s)
    end
  end
  local done = settled(state)
  return done and now or now + patience, done
end

-- No longer a follower of anything.
local function leave()
  local lead = redis.call('HGET', hash, 'lead')
  if lead then
    redis.call('ZREM', prefix .. 'followers:' .. lead, key)
    redis.call('HDEL', hash, 'lead', 'follows', 'told')
  end
end

-- True when the caller still holds the lease of this generation.
local function holds(generation, fence)
  local held = redis.call('HMGET', hash, 'generation', 'fence')
  return held[1] == generation and held[2] == fence
end
