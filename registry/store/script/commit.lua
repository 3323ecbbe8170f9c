-- Makes the changes of one batch. The store must hold the newest batch that is
-- known to have been made, or this batch itself, when the answer to the first
-- attempt got lost.
-- KEYS: fence, format, revision, feed, counts, hashes of the buckets, the leases' last.
-- ARGV: fence, revision, the newest revision that is known to have been made,
--       what changed (JSON), length of the feed,
--       then for each change: index of its hash, "set" or "del", field, value.
-- Returns "ok", "fenced" or "lost".
local fence = tonumber(redis.call('GET', KEYS[1]) or '0')
if fence > tonumber(ARGV[1]) then
  return 'fenced'
end
if fence < tonumber(ARGV[1])
  or not redis.call('GET', KEYS[2])
  or tonumber(redis.call('GET', KEYS[3]) or '0') < tonumber(ARGV[3]) then
  return 'lost'
end
for i = 6, #ARGV, 4 do
  local hash = KEYS[5 + tonumber(ARGV[i])]
  local more
  if ARGV[i + 1] == 'set' then
    more = redis.call('HSET', hash, ARGV[i + 2], ARGV[i + 3])
  else
    more = -redis.call('HDEL', hash, ARGV[i + 2])
  end
  if more ~= 0 and hash ~= KEYS[#KEYS] then
    redis.call('HINCRBY', KEYS[5], hash, more)
  end
end
redis.call('SET', KEYS[3], ARGV[2])
redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[5], '*', 'fence', ARGV[1], 'revision', ARGV[2], 'changed', ARGV[4])
return 'ok'
