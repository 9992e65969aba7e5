-- Leave a stage: only the lease holder may. Frees the lease.
-- ARGV: 3 generation 4 fence 5 state 6 reason 7 delay ms until due ('' nothing owed) 8 retention s 9 counter to give an attempt back to ('' none) 10.. field value pairs
if not holds(ARGV[3], ARGV[4]) then return 0 end
local state, reason, retention = ARGV[5], ARGV[6], tonumber(ARGV[8])
local at = ARGV[7] ~= '' and now_ms() + tonumber(ARGV[7]) or nil
redis.call('HSET', hash, 'fence', '', 'lease_until', 0)
if ARGV[9] ~= '' then redis.call('HINCRBY', hash, ARGV[9], -1) end
if #ARGV >= 10 then redis.call('HSET', hash, unpack(ARGV, 10)) end
if state == 'grouped' then -- the lead may have been settled while its follower looked
  local lead = redis.call('HGET', hash, 'lead')
  if lead and settled(redis.call('HGET', prefix .. 'alert:' .. lead, 'state')) then at = now_ms() end
end
move(state, reason, at, retention)
if not settled(state) or redis.call('HGET', hash, 'lead') then return 1 end

-- Its followers are owed a line now, or a new lead. Spread out, so that they don't hold up everything else that is due.
local now, again = now_ms(), state == 'written' and tonumber(ARGV[3]) > 1
for i, follower in ipairs(redis.call('ZRANGE', prefix .. 'followers:' .. key, 0, -1)) do
  local record = redis.call('HMGET', prefix .. 'alert:' .. follower, 'state', 'lead')
  if record[2] == key and record[1] == 'grouped' then
    redis.call('ZADD', due, now + i * 5, follower)
  elseif record[2] == key and record[1] == 'written' and again then
    move_other(follower, 'grouped', 'its lead was investigated again', now + i * 5, 0)
  end
end
return 1
