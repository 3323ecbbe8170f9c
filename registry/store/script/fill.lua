-- Fills a store that was lost or is new, a piece at a time: the first piece
-- clears it, the last one declares it whole.
-- KEYS: lease, fence, format, revision, feed, counts, hashes of the buckets, the leases' last.
-- ARGV: owner, ttl in ms, fence, revision, format, length of the feed,
--       "first", "" or "last", then for each value: index of its hash, field, value.
-- Returns "ok" or "fenced".
local fence = redis.pcall('GET', KEYS[2])
if type(fence) == 'table' then
  fence = false -- no string, so not ours: it is written over
end
if tonumber(fence or '0') > tonumber(ARGV[3]) then
  return 'fenced'
end
redis.call('SET', KEYS[2], ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[7] == 'first' then
  redis.call('DEL', KEYS[3], KEYS[6])
  for i = 7, #KEYS - 1 do
    redis.call('DEL', KEYS[i])
  end
  if type(redis.pcall('XLEN', KEYS[5])) == 'table' then
    redis.call('DEL', KEYS[5])
  end
  if type(redis.pcall('HLEN', KEYS[#KEYS])) == 'table' then
    redis.call('DEL', KEYS[#KEYS])
  end
end
for i = 8, #ARGV, 3 do
  redis.call('HSET', KEYS[6 + tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2])
end
if ARGV[7] == 'last' then
  for i = 7, #KEYS - 1 do
    redis.call('HSET', KEYS[6], KEYS[i], redis.call('HLEN', KEYS[i]))
  end
  redis.call('SET', KEYS[4], ARGV[4])
  redis.call('SET', KEYS[3], ARGV[5])
  redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[6], '*', 'fence', ARGV[3], 'revision', ARGV[4], 'changed', '')
end
return 'ok'
