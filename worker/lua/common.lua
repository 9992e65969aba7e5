-- Shared by every script: time, indexes, audit. Scripts are this file plus their own.
-- ARGV[1] is always the key prefix, ARGV[2] the alert key.
local prefix, key = ARGV[1], ARGV[2]
local hash = prefix .. 'alert:' .. key
local due = prefix .. 'due'

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function audit(line)
  local log = prefix .. 'audit:' .. key
  redis.call('RPUSH', log, cjson.encode(line))
  redis.call('LTRIM', log, -200, -1)
end

-- Move to `state`; `at` nil means nothing is owed any more, and the record expires after `retention_s`.
local function move(state, reason, at, retention_s)
  local now = now_ms()
  local before = redis.call('HGET', hash, 'state')
  if before then redis.call('ZREM', prefix .. 'state:' .. before, key) end
  redis.call('ZADD', prefix .. 'state:' .. state, now, key)
  redis.call('HSET', hash, 'state', state, 'reason', reason, 'updated_ms', now)
  local log = prefix .. 'audit:' .. key
  audit({ at = now, state = state, reason = reason, generation = tonumber(redis.call('HGET', hash, 'generation')) })
  if at then
    redis.call('ZADD', due, at, key)
    redis.call('PERSIST', hash)
    redis.call('PERSIST', log)
  else
    redis.call('ZREM', due, key)
    redis.call('EXPIRE', hash, retention_s)
    redis.call('EXPIRE', log, retention_s)
  end
end

-- True when the caller still holds the lease of this generation.
local function holds(generation, fence)
  local held = redis.call('HMGET', hash, 'generation', 'fence')
  return held[1] == generation and held[2] == fence
end
