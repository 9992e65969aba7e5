-- A follower whose lead came to nothing takes its place; whoever comes second follows it. Only the lease holder may.
-- ARGV: 3 generation 4 fence 5 patience ms 6 retention s 7 why
-- Returns promoted | repointed | lost
if not holds(ARGV[3], ARGV[4]) then return 'lost' end
local patience, retention, why = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local lead = redis.call('HGET', hash, 'lead')
local place = prefix .. 'successor:' .. lead
local successor = redis.call('GET', place)
local state = successor and successor ~= key and redis.call('HGET', prefix .. 'alert:' .. successor, 'state')
redis.call('HSET', hash, 'fence', '', 'lease_until', 0, 'write_attempts', 0)
local follows = redis.call('HGET', hash, 'follows')
leave()
if state and state ~= 'skipped' then
  redis.call('HSET', hash, 'follows', follows or '')
  local look = join(successor, 0, patience, retention, '')
  move('grouped', 'follows ' .. successor, look, 0)
  return 'repointed'
end
redis.call('SET', place, key, 'EX', retention)
local group = redis.call('HMGET', prefix .. 'alert:' .. lead, 'scope', 'group_first', 'group_last', 'source')
if group[1] and group[2] then
  local index = prefix .. 'groups:' .. group[4] .. ':' .. group[1]
  redis.call('HSET', hash, 'scope', group[1], 'group_first', group[2], 'group_last', group[3])
  if redis.call('ZREM', index, lead) == 1 then redis.call('ZADD', index, group[3], key) end
end
redis.call('HSET', hash, 'promoted', 1, 'unpublished', 1, 'attempts', 0)
redis.call('HDEL', hash, 'outcome', 'confidence', 'settle')
move('queued', why, now_ms(), 0)
return 'promoted'
