-- Takes the lease if nobody else has it, and the store has the owner's schema or none.
-- KEYS: lease, fence, schema. ARGV: owner, ttl in ms, floor of the fencing number, the number
-- where none is known, the owner's schema.
-- Returns {fence, "", schema}, {0, holder, schema}, or {0, "", schema} where that is another one.
-- What is no string is not ours, and is written over.
local function text(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    return false
  end
  return value
end
local schema = tonumber(text(KEYS[3]) or '0') or 0
local shown = string.format('%.0f', schema)
if schema ~= 0 and schema ~= tonumber(ARGV[5]) then
  return {'0', '', shown}
end
local holder = text(KEYS[1])
if holder and holder ~= ARGV[1] then
  return {'0', holder, shown}
end
local last = math.max(tonumber(text(KEYS[2]) or '0'), tonumber(ARGV[3]))
local fence = last + 1
if last == 0 then
  fence = tonumber(ARGV[4])
end
fence = string.format('%.0f', fence)
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {fence, '', shown}
