-- Leave a stage: only the lease holder may. Frees the lease.
-- ARGV: 3 generation 4 fence 5 state 6 reason 7 delay ms until due ('' nothing owed) 8 retention s 9 keep attempt (1|0) 10.. field value pairs
if not holds(ARGV[3], ARGV[4]) then return 0 end
local state, reason, retention = ARGV[5], ARGV[6], tonumber(ARGV[8])
local at = ARGV[7] ~= '' and now_ms() + tonumber(ARGV[7]) or nil
redis.call('HSET', hash, 'fence', '', 'lease_until', 0)
if ARGV[9] == '0' then redis.call('HINCRBY', hash, 'attempts', -1) end
if #ARGV >= 10 then redis.call('HSET', hash, unpack(ARGV, 10)) end
move(state, reason, at, retention)
return 1
