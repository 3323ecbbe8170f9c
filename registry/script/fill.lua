-- Fills a store that was lost or is new, a piece at a time: the first piece
-- clears it, the last one declares it whole.
-- KEYS: lease, fence, schema, revision, feed, hashes of the buckets.
-- ARGV: owner, ttl in ms, fence, revision, schema, length of the feed,
--       "first", "" or "last", then for each value: index of its hash, field, value.
-- Returns "ok" or "fenced".
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if fence > tonumber(ARGV[3]) then
  return 'fenced'
end
redis.call('SET', KEYS[2], ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[7] == 'first' then
  redis.call('DEL', KEYS[3])
  for i = 6, #KEYS do
    redis.call('DEL', KEYS[i])
  end
end
for i = 8, #ARGV, 3 do
  redis.call('HSET', KEYS[5 + tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2])
end
if ARGV[7] == 'last' then
  redis.call('SET', KEYS[4], ARGV[4])
  redis.call('SET', KEYS[3], ARGV[5])
  redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[6], '*', 'fence', ARGV[3], 'revision', ARGV[4], 'changed', '')
end
return 'ok'
