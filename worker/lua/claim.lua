-- Take the lease before work; the attempt is counted first, so that a task that kills its worker is counted too.
-- ARGV: 3 generation 4 fence 5 lease ms 6 attempts cap 7 stage (investigate|write)
-- Returns the verdict: taken | parked (attempts used up, lease taken to say so) | gone | stale | settled | held
local generation, fence, lease, cap, stage = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local now = now_ms()
local record = redis.call('HMGET', hash, 'state', 'generation', 'lease_until', 'attempts', 'write_attempts')
local state = record[1]
if not state then return 'gone' end
if record[2] ~= generation then return 'stale' end
local ready
if stage == 'investigate' then ready = state == 'queued' or state == 'investigating'
else ready = state == 'reported' or state == 'write_failed' or state == 'grouped' end
if not ready then return 'settled' end
if tonumber(record[3]) > now then return 'held' end
local counter = stage == 'investigate' and 'attempts' or 'write_attempts'
local attempt = redis.call('HINCRBY', hash, counter, 1)
redis.call('HSET', hash, 'fence', fence, 'lease_until', now + lease)
if stage == 'investigate' then
  if redis.call('HGET', hash, 'started_ms') == '0' then redis.call('HSET', hash, 'started_ms', now) end
  move('investigating', 'attempt ' .. attempt, now + lease, 0)
else
  redis.call('ZADD', due, now + lease, key)
end
return attempt > cap and 'parked' or 'taken'
