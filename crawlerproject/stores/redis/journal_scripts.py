"""What runs inside Redis for journals and messages; as in ``scripts.py``, harmless when it is run twice."""

from __future__ import annotations

from crawlerproject.stores.redis.scripts import script

# The rows of a partition in the frontier of its holder are whole from now on, whatever another frontier has.
# KEYS lease; ARGV worker, token, the crawl's id. -> 1, or 0: the lease is another's
OPEN = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'of', ARGV[2], 'crawl', ARGV[3])
return 1
"""
)

# As many words at a time as Lua hands on.
_MANY = """
local function many(command, key, words)
  local found = {}
  if #words > 0 and #words <= 4000 then return redis.call(command, key, unpack(words)) end
  for first = 1, #words, 4000 do
    local some = redis.call(command, key, unpack(words, first, math.min(#words, first + 3999)))
    if type(some) == 'table' then for n, each in ipairs(some) do found[first + n - 1] = each end end
  end
  return found
end
local function number(n) return struct.pack('>i8', n) end
"""

# From here on another incarnation under this name is refused. KEYS state, fenced; ARGV incarnation.
# -> serial of the last change, how many the log ever got
BEGIN = script(
    """
redis.call('HSET', KEYS[1], 'life', ARGV[1])
redis.call('DEL', KEYS[2])
local s = redis.call('HMGET', KEYS[1], 'serial', 'came')
return {s[1] or '0', s[2] or '0'}
"""
)

# Whether the server takes writes: one without room or of a replica refuses this. KEYS state; ARGV incarnation
REACH = script(
    """
if redis.call('HGET', KEYS[1], 'life') == ARGV[1] then redis.call('HSET', KEYS[1], 'life', ARGV[1]) end
return 1
"""
)

# What a worker decides about partitions under these tokens is refused from now on: its log has all that counts.
# KEYS fenced; ARGV (partition, token)*
FENCE = script(
    """
for i = 1, #ARGV, 2 do
  local b = redis.call('HGET', KEYS[1], ARGV[i])
  if not b or tonumber(b) < tonumber(ARGV[i + 1]) then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1
"""
)

# For each partition P of ARGV from ``i`` on: "P:"; (8 bytes each) messages that were ever removed, number of marks;
# ("P=OUTBOX", number of its last message that took effect)*
_MARK = """
local function mark(ledger, i)
  local asked, remove, now, gone, done = {}, {}, {}, {}, {}
  while i <= #ARGV do
    local marks
    asked[#asked + 1] = ARGV[i]
    remove[#asked], marks = struct.unpack('>i8i8', ARGV[i + 1])
    for n = i + 2, i + 1 + 2 * marks do now[#now + 1] = ARGV[n] end
    for n = i + 2, i + 1 + 2 * marks, 2 do done[ARGV[n]] = tonumber(ARGV[n + 1]) end
    i = i + 2 + 2 * marks
  end
  for p, known in ipairs(many('HMGET', ledger, asked)) do
    local n = known and remove[p] - struct.unpack('>i8', known) or 0
    if n > 0 then
      -- One that had no effect and came twice stays until it is removed as often; of the others a name alone is left.
      local box, without = string.sub(asked[p], 1, -2) .. '=', {}
      for at = 9, math.min(8 + 24 * n, #known), 24 do
        local name = string.sub(known, at, at + 23)
        if (done[box .. string.sub(name, 1, 16)] or -1) >= struct.unpack('>i8', name, 17) then
          gone[#gone + 1] = asked[p] .. name
        else
          without[name] = true
        end
      end
      if next(without) then
        for at = 9 + 24 * n, #known, 24 do without[string.sub(known, at, at + 23)] = nil end
        for name in pairs(without) do gone[#gone + 1] = asked[p] .. name end
      end
      now[#now + 1], now[#now + 2] = asked[p], number(remove[p]) .. string.sub(known, 9 + 24 * n)
    end
  end
  many('HSET', ledger, now)
  many('HDEL', ledger, gone)
end
"""

# Decides a change of a worker: all or nothing, and once. What a page has named is known no later than that the page is
# done, and a page is done with the length of the archive that has it. On a single server messages whose effect it holds
# go as well. Each try has a serial of its own: one that comes late, behind the next, decides nothing.
# KEYS state, log, fenced, ledger; ARGV incarnation, serial, that of the last change that was answered for, number of
# facts, (name, value)*, entry of the log or '', (partition, token; 8 bytes each)* in one, then as ``mark`` has it
# -> ok, how many the log ever got | life | serial, N (the last one, which is later, or before the one answered for; 0:
# nothing is known of the worker) | barred, PARTITION | lacks, PARTITION (on a single server: who took it is not known)
DECIDE = script(
    _MANY
    + _MARK
    + """
local s = redis.call('HMGET', KEYS[1], 'life', 'serial', 'came')
if not s[1] then return {'serial', 0} end
if s[1] ~= ARGV[1] then return {'life', 0} end
local last, serial = tonumber(s[2] or '0'), tonumber(ARGV[2])
if last == serial then return {'ok', tonumber(s[3] or '0')} end
if last > serial or last < tonumber(ARGV[3]) then return {'serial', last} end
local behind = 5 + 2 * tonumber(ARGV[4])
local entry, fences, asked = ARGV[behind], ARGV[behind + 1], {}
for at = 1, #fences, 16 do asked[#asked + 1] = struct.unpack('>i8', fences, at) end
if redis.call('EXISTS', KEYS[3]) == 1 then
  for n, b in ipairs(many('HMGET', KEYS[3], asked)) do
    if b and tonumber(b) >= struct.unpack('>i8', fences, 16 * n - 7) then return {'barred', asked[n]} end
  end
end
if KEYS[4] then
  for n, head in ipairs(many('HMGET', KEYS[4], asked)) do
    local known = head and math.abs((struct.unpack('>i8', head))) or 0
    if known < struct.unpack('>i8', fences, 16 * n - 7) then return {'lacks', asked[n]} end
  end
end
-- A full server refuses a script's first write or none: it must be one that takes room.
local came = tonumber(s[3] or '0') + (entry == '' and 0 or 1)
local words = {'serial', ARGV[2], 'came', came}
for i = 5, behind - 1, 2 do words[i], words[i + 1] = 'fact:' .. ARGV[i], ARGV[i + 1] end
many('HSET', KEYS[1], words)
if entry ~= '' then redis.call('RPUSH', KEYS[2], entry) end
if #ARGV > behind + 1 then mark(KEYS[4], behind + 2) end
return {'ok', came}
"""
)

# In a cluster, for one partition, as long as its holder is the one of that token. KEYS ledger; ARGV partition, token,
# then as ``mark`` has it
MARK = script(
    _MANY
    + _MARK
    + """
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known and struct.unpack('>i8', known) == tonumber(ARGV[2]) then mark(KEYS[1], 3) end
return 1
"""
)

# So many of all that the log ever got are in journals. KEYS state, log; ARGV incarnation, how many
TRIM = script(
    """
local s = redis.call('HMGET', KEYS[1], 'life', 'went')
local left = tonumber(ARGV[2]) - tonumber(s[2] or '0')
if s[1] ~= ARGV[1] or left <= 0 then return 0 end
redis.call('HSET', KEYS[1], 'went', ARGV[2])
redis.call('LTRIM', KEYS[2], left, -1)
return 1
"""
)

# Adds to journals what was decided, each change once, however often it is called, and whoever does it.
# KEYS ledger, the journal of each partition; ARGV for each: its number, (8 bytes each) number of the first change,
# number of changes; changes*
# -> 0, bytes of each journal | PLACE (1 ..: something of the partition was lost)
APPEND = script(
    _MANY
    + """
local asked, each, i = {}, {}, 1
for p = 1, #KEYS - 1 do
  local first, changes = struct.unpack('>i8i8', ARGV[i + 1])
  each[p] = {first = first, from = i + 2, behind = i + 2 + changes}
  asked[p] = ARGV[i]
  i = each[p].behind
end
local known, now = many('HMGET', KEYS[1], asked), {}
for p, of in ipairs(each) do
  of.token, of.last, of.bytes = 0, 0, 0
  if known[p] then of.token, of.last, of.bytes = struct.unpack('>i8i8i8', known[p]) end
  if not known[p] or of.first > of.last + 1 then return {p} end
end
local bytes = {0}
for p, of in ipairs(each) do
  local words = {}
  for n = of.from + of.last + 1 - of.first, of.behind - 1 do
    words[#words + 1] = ARGV[n]
    of.bytes = of.bytes + #ARGV[n]
  end
  if #words > 0 then
    many('RPUSH', KEYS[p + 1], words)
    now[#now + 1] = asked[p]
    now[#now + 1] = struct.pack('>i8i8i8', of.token, of.last + #words, of.bytes)
  end
  bytes[p + 1] = of.bytes
end
many('HSET', KEYS[1], now)
return bytes
"""
)

# Messages to partitions are there, behind those that are. KEYS ledger; ARGV ("P:", their names)* of each partition P
NOTE = script(
    _MANY
    + """
local asked, now = {}, {}
for p = 1, #ARGV / 2 do asked[p] = ARGV[2 * p - 1] end
for p, known in ipairs(many('HMGET', KEYS[1], asked)) do
  now[2 * p - 1], now[2 * p] = asked[p], (known or number(0)) .. ARGV[2 * p]
end
many('HSET', KEYS[1], now)
return 1
"""
)

# Of outboxes of which no message can come any more, but for those that an inbox has: how far they were read.
# KEYS ledger; ARGV partition, token, outboxes*. -> 1, or 0: there are messages, or the partition is another's
FORGET_MARKS = script(
    _MANY
    + """
local known, gone = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[1] .. ':'), {}
if #(known[2] or '') > 8 or not known[1] or struct.unpack('>i8', known[1]) ~= tonumber(ARGV[2]) then return 0 end
for n = 3, #ARGV do gone[n - 2] = ARGV[1] .. '=' .. ARGV[n] end
many('HDEL', KEYS[1], gone)
return 1
"""
)

# What an inbox of format 2 has comes into the ledger, where today's are: of an outbox of NUL, numbered as they came.
# KEYS inbox, ledger; ARGV partition
MOVE_INBOX = script(
    _MANY
    + """
local rows, now, field = redis.call('LRANGE', KEYS[1], 0, -1), {}, ARGV[1] .. ':'
local known = redis.call('HGET', KEYS[2], field) or number(0)
local came = struct.unpack('>i8', known) + (#known - 8) / 24
for n, row in ipairs(rows) do
  local name = number(0) .. number(0) .. number(came + n)
  known, now[2 * n + 1], now[2 * n + 2] = known .. name, field .. name, row
end
now[1], now[2] = field, known
if #rows > 0 then many('HSET', KEYS[2], now) end
redis.call('DEL', KEYS[1])
return 1
"""
)
