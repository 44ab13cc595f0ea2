"""What runs inside Redis for a worker's batches; as in ``scripts.py``, each atomic and harmless when run twice."""

from __future__ import annotations

from crawlerproject.stores.redis.scripts import script

# KEYS fenced, state, batch, left (a predecessor's); ARGV partition, token. -> serial, part of its last batch or ''
FENCE = script(
    """
local b = redis.call('HGET', KEYS[1], ARGV[1])
if not b or tonumber(b) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
local part = redis.call('HGET', KEYS[3], ARGV[1])
if part then return {redis.call('HGET', KEYS[2], 'serial') or '0', part} end
local left = redis.call('HGET', KEYS[4], ARGV[1])
if not left then return {'0', ''} end
local colon = string.find(left, ':', 1, true)
return {string.sub(left, 1, colon - 1), string.sub(left, colon + 1)}
"""
)

# From here on another incarnation under this name is refused. What the last one decided and may not have written is put
# aside for the worker that takes the partition: the next batch takes its place.
# KEYS state, batch, left; ARGV incarnation. -> serial of the last batch
BEGIN = script(
    """
local serial = redis.call('HGET', KEYS[1], 'serial') or '0'
local beat = redis.call('HGETALL', KEYS[2])
for i = 1, #beat, 2 do redis.call('HSET', KEYS[3], beat[i], serial .. ':' .. beat[i + 1]) end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'life', ARGV[1])
return redis.call('HGET', KEYS[1], 'serial') or '0'
"""
)

# In a Redis Cluster a batch is decided here, as one change: the worker's facts (the archive's length) and what each
# partition will get, which APPLY then writes.
# KEYS state, batch, fenced; ARGV incarnation, serial, number of facts, (name, value)*, (partition, token, part)*
# -> ok | life | serial N (not the one before; 0: nothing is known of the worker) | barred PARTITION
JOURNAL = script(
    """
local s = redis.call('HMGET', KEYS[1], 'life', 'serial')
if not s[1] then return {'serial', '0'} end
if s[1] ~= ARGV[1] then return {'life'} end
local last, serial = tonumber(s[2] or '0'), tonumber(ARGV[2])
if last == serial then return {'ok'} end
if last ~= serial - 1 then return {'serial', tostring(last)} end
local first = 4 + 2 * tonumber(ARGV[3])
for i = first, #ARGV, 3 do
  local b = redis.call('HGET', KEYS[3], ARGV[i])
  if b and tonumber(b) >= tonumber(ARGV[i + 1]) then return {'barred', ARGV[i]} end
end
-- A full server refuses a script's first write or none: it must be one that takes room.
redis.call('HSET', KEYS[1], 'serial', ARGV[2])
redis.call('DEL', KEYS[2])
for i = first, #ARGV, 3 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2]) end
for i = 4, first - 1, 2 do redis.call('HSET', KEYS[1], 'fact:' .. ARGV[i], ARGV[i + 1]) end
return {'ok'}
"""
)

# Writes a partition's part of a batch. KEYS from k + 1: lease, work, pages, hosts, robots, inbox, prints, queue*, up to
# KEYS[last]; ARGV from a + 1: length of the queues' prefix, messages read,
#   numbers of: bundles opened (queue, place), rows removed (queue, place), queues that get members (queue, twice their
#   number, (0, member)*), keys, pages, hosts, robots (name, value), fingerprints (0, member);
#   keys surely new, 24 bytes each; then all those things.
# Redis spends more on a call from a script than on most of what the call does: so many at once as Lua can pass on.
_WRITE = r"""
local call = redis.call
local function write(k, last, a)
  local i = a + 12
  local function put(command, key, count)
    while count > 0 do
      local some = math.min(count, 4000)
      call(command, key, unpack(ARGV, i, i + some - 1))
      i, count = i + some, count - some
    end
  end
  for _ = 1, tonumber(ARGV[a + 3]) do
    call('ZREMRANGEBYLEX', KEYS[k + 7 + ARGV[i]], '[' .. ARGV[i + 1] .. '\1', '(' .. ARGV[i + 1] .. '\2')
    i = i + 2
  end
  for _ = 1, tonumber(ARGV[a + 4]) do
    call('ZREMRANGEBYLEX', KEYS[k + 7 + ARGV[i]], '[' .. ARGV[i + 1] .. '\0', '(' .. ARGV[i + 1] .. '\1')
    i = i + 2
  end
  for _ = 1, tonumber(ARGV[a + 5]) do
    i = i + 2
    put('ZADD', KEYS[k + 7 + ARGV[i - 2]], tonumber(ARGV[i - 1]))
  end
  for _ = 1, tonumber(ARGV[a + 6]) do
    call('HSETNX', KEYS[k + 3], ARGV[i], '')
    i = i + 1
  end
  local new, fields, n = ARGV[a + 11], {}, 0
  for at = 1, #new, 24 do
    fields[n + 1], fields[n + 2] = string.sub(new, at, at + 23), ''
    n = n + 2
    if n == 4000 then
      call('HSET', KEYS[k + 3], unpack(fields))
      fields, n = {}, 0
    end
  end
  if n > 0 then call('HSET', KEYS[k + 3], unpack(fields)) end
  for h = 3, 5 do put('HSET', KEYS[k + h], 2 * ARGV[a + 4 + h]) end
  put('ZADD', KEYS[k + 7], 2 * ARGV[a + 10])
  local cut = tonumber(ARGV[a + 1]) + 1
  for q = k + 8, last do
    local host = string.sub(KEYS[q], cut)
    if call('EXISTS', KEYS[q]) == 1 then call('SADD', KEYS[k + 2], host) else call('SREM', KEYS[k + 2], host) end
  end
  if ARGV[a + 2] ~= '0' then call('LTRIM', KEYS[k + 6], tonumber(ARGV[a + 2]), -1) end
end
"""

# A partition's part of a batch that was decided. Refused unless the caller holds the partition; done once however often
# it is called.
# KEYS as above; ARGV worker, token, author of the batch, serial, then as above
# -> 1 done | 2 done before | 0 not the holder
APPLY = script(
    _WRITE
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'by:' .. ARGV[3])
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
if h[3] and tonumber(h[3]) >= tonumber(ARGV[4]) then return 2 end
write(0, #KEYS, 4)
call('HSET', KEYS[1], 'by:' .. ARGV[3], ARGV[4])
return 1
"""
)

# On one server a batch is decided and written at once: it need not be sent twice, nor kept.
# KEYS state, fenced, then those of each partition; ARGV worker, incarnation, serial, numbers of facts and partitions,
# (name, value)*, then for each partition: partition, token, number of its keys, number of arguments, these as above
# -> as JOURNAL
COMMIT = script(
    _WRITE
    + """
local s = call('HMGET', KEYS[1], 'life', 'serial')
if not s[1] then return {'serial', '0'} end
if s[1] ~= ARGV[2] then return {'life'} end
local last, serial, first = tonumber(s[2] or '0'), tonumber(ARGV[3]), 6 + 2 * ARGV[4]
if last == serial then return {'ok'} end
if last ~= serial - 1 then return {'serial', tostring(last)} end
local function each(visit)
  local k, a = 2, first - 1
  for _ = 1, tonumber(ARGV[5]) do
    visit(k, a)
    k, a = k + ARGV[a + 3], a + 4 + ARGV[a + 4]
  end
end
local lost
each(function(k, a)
  local b, h = call('HGET', KEYS[2], ARGV[a + 1]), call('HMGET', KEYS[k + 1], 'holder', 'token')
  if h[1] ~= ARGV[1] or h[2] ~= ARGV[a + 2] or (b and tonumber(b) >= tonumber(ARGV[a + 2])) then lost = ARGV[a + 1] end
end)
if lost then return {'barred', lost} end
-- A full server refuses a script's first write or none: it must be one that takes room.
call('HSET', KEYS[1], 'serial', ARGV[3])
for i = 6, first - 1, 2 do call('HSET', KEYS[1], 'fact:' .. ARGV[i], ARGV[i + 1]) end
each(function(k, a)
  write(k, k + ARGV[a + 3], a + 4)
  call('HSET', KEYS[k + 1], 'by:' .. ARGV[1], ARGV[3])
end)
return {'ok'}
"""
)
