-- Extend the lease and append events (none: a heartbeat). A worker that lost its lease writes nothing.
-- ARGV: 3 generation 4 fence 5 lease ms 6 investigation 7 retention s 8.. events
if not holds(ARGV[3], ARGV[4]) then return 0 end
local until_ms = now_ms() + tonumber(ARGV[5])
redis.call('HSET', hash, 'lease_until', until_ms)
redis.call('ZADD', due, until_ms, key)
if #ARGV >= 8 then
  local journal = prefix .. 'journal:' .. ARGV[6]
  redis.call('RPUSH', journal, unpack(ARGV, 8))
  redis.call('EXPIRE', journal, ARGV[7])
end
return 1
