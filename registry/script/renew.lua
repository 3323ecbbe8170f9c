-- Prolongs the lease, also one that ran out while nobody else led.
-- KEYS: lease, fence, schema, revision. ARGV: owner, ttl in ms, fence, revision.
-- Returns "ok", "fenced" or "lost".
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if fence > tonumber(ARGV[3]) then
  return 'fenced'
end
if fence < tonumber(ARGV[3])
  or redis.call('EXISTS', KEYS[3]) == 0
  or tonumber(redis.call('GET', KEYS[4]) or '0') < tonumber(ARGV[4]) then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'ok'
