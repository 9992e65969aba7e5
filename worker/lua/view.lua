-- What a decision on one alert rests on; see worker/triage.py. `plan` is the JSON that the caller sent.
local function lead_of(name)
  local record = redis.call('HMGET', prefix .. 'alert:' .. name, 'state', 'group_first', 'group_last', 'group_size', 'critical')
  if not record[1] or not record[2] then return nil end
  return { lead = name, state = record[1], first = tonumber(record[2]), last = tonumber(record[3]),
    size = tonumber(record[4] or 1), critical = record[5] == '1' }
end

local function leads_of(source, scope)
  local found = {}
  if scope == '' then return found end
  for _, name in ipairs(redis.call('ZREVRANGE', prefix .. 'groups:' .. source .. ':' .. scope, 0, 3)) do
    if name ~= key then found[#found + 1] = lead_of(name) end
  end
  return found
end

local function kin_of(source, fingerprint)
  local found = {}
  if fingerprint == '' then return found end
  local family = redis.call('ZREVRANGE', prefix .. 'fingerprint:' .. source .. ':' .. fingerprint, 0, 9, 'WITHSCORES')
  for i = 1, #family, 2 do
    if family[i] ~= key then
      local record = redis.call('HMGET', prefix .. 'alert:' .. family[i], 'state', 'lead', 'outcome', 'severity')
      if record[1] then
        found[#found + 1] = { key = family[i], at = tonumber(family[i + 1]), state = record[1],
          lead = record[2] or '', outcome = record[3] or '', severity = record[4] or '' }
      end
    end
  end
  return found
end

local function view(plan, source, fingerprint)
  local family = prefix .. 'fingerprint:' .. source .. ':' .. fingerprint
  local own = redis.call('ZSCORE', family, key)
  local function times(since)
    if fingerprint == '' then return 0 end
    local counted = redis.call('ZCOUNT', family, since, plan.at)
    local mine = own and tonumber(own) >= since and tonumber(own) <= plan.at
    return mine and counted - 1 or counted
  end
  return cjson.encode({
    version = redis.call('HGET', prefix .. 'grouping', source) or '0',
    state = redis.call('HGET', hash, 'state') or '',
    groups = leads_of(source, plan.scope),
    storm = leads_of(source, '*'),
    started = redis.call('ZCOUNT', prefix .. 'started:' .. source, plan.storm_since, plan.at),
    kin = kin_of(source, fingerprint),
    recent = times(plan.recent_since),
    today = times(plan.midnight),
  })
end
