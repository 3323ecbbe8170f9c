-- Makes the changes of one batch. The store must hold the batch before it, or
-- this batch itself, when the answer to the first attempt got lost.
-- KEYS: fence, schema, revision, feed, hashes of the buckets.
-- ARGV: fence, revision, what changed (JSON), length of the feed,
--       then for each change: index of its hash, "set" or "del", field, value.
-- Returns "ok", "fenced" or "lost".
local fence = tonumber(redis.call('GET', KEYS[1]) or '0')
if fence > tonumber(ARGV[1]) then
  return 'fenced'
end
if fence < tonumber(ARGV[1])
  or redis.call('EXISTS', KEYS[2]) == 0
  or tonumber(redis.call('GET', KEYS[3]) or '0') < tonumber(ARGV[2]) - 1 then
  return 'lost'
end
for i = 5, #ARGV, 4 do
  local hash = KEYS[4 + tonumber(ARGV[i])]
  if ARGV[i + 1] == 'set' then
    redis.call('HSET', hash, ARGV[i + 2], ARGV[i + 3])
  else
    redis.call('HDEL', hash, ARGV[i + 2])
  end
end
redis.call('SET', KEYS[3], ARGV[2])
redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[4], '*', 'fence', ARGV[1], 'revision', ARGV[2], 'changed', ARGV[3])
return 'ok'
