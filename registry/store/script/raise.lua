-- Makes the leader's fencing number higher.
-- KEYS: lease, fence, format. ARGV: owner, ttl in ms, fence, the higher one.
-- Returns "ok", also when that was done already and the answer got lost, "fenced" or "lost".
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if fence == tonumber(ARGV[4]) and redis.call('GET', KEYS[1]) == ARGV[1] then
  return 'ok'
end
if fence > tonumber(ARGV[3]) then
  return 'fenced'
end
if fence < tonumber(ARGV[3]) or not redis.call('GET', KEYS[3]) then
  return 'lost'
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 'fenced' -- see renew.lua
end
redis.call('SET', KEYS[2], ARGV[4])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'ok'
