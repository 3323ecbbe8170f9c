-- Takes the lease if nobody else has it.
-- KEYS: lease, fence. ARGV: owner, ttl in ms, floor of the fencing number, the number
-- where none is known.
-- Returns {fence, ""} or {0, holder}.
-- What is no string is not ours, and is written over.
local function text(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    return false
  end
  return value
end
local holder = text(KEYS[1])
if holder and holder ~= ARGV[1] then
  return {'0', holder}
end
local last = math.max(tonumber(text(KEYS[2]) or '0'), tonumber(ARGV[3]))
local fence = last + 1
if last == 0 then
  fence = tonumber(ARGV[4])
end
fence = string.format('%.0f', fence)
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {fence, ''}
