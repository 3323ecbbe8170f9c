-- Prolongs the lease, also one that ran out while nobody else led.
-- KEYS: lease, fence, format, revision, counts, hashes of the buckets but the leases'.
-- ARGV: owner, ttl in ms, fence, revision.
-- Returns "ok", "fenced", "lost" or, when a hash has not as many fields as it should, "holes".
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if fence > tonumber(ARGV[3]) then
  return 'fenced'
end
if fence < tonumber(ARGV[3])
  or not redis.call('GET', KEYS[3])
  or tonumber(redis.call('GET', KEYS[4]) or '0') < tonumber(ARGV[4]) then
  return 'lost'
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 'fenced' -- two have one number: a replica took over that had lost who led last
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for i = 6, #KEYS do
  if redis.call('HLEN', KEYS[i]) ~= tonumber(redis.call('HGET', KEYS[5], KEYS[i]) or '0') then
    return 'holes'
  end
end
return 'ok'
