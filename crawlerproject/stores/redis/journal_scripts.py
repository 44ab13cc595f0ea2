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
local function counts(known)
  if not known then return 0, 0 end
  return struct.unpack('>i8i8', known)
end
local function set_counts(came, removed) return struct.pack('>i8i8', came, removed) end
local function number(n) return struct.pack('>i8', n) end
"""

# Adds changes to journals, each once, however often it is called, and removes messages whose effect they hold. All or
# nothing: what a page has named is known no later than that the page is done, and a page is done with the length of the
# archive that has it. In a cluster it adds what ``scripts.JOURNAL`` has decided, to one partition at a time.
# KEYS the worker's state (where all is one change), ledger, the journal of each partition
# ARGV incarnation, serial (0: it was decided before), number of facts, (name, value)*, then for each partition: its
# number, token, (8 bytes each) number of the first change, messages that were ever removed, numbers of marks and of
# changes; (outbox, number of its last message that took effect)*, changes*
# -> ok | life | serial N (not this one nor the one before; 0: nothing is known of the worker)
# | lost PLACE (1 ..: the lease is another's) | lacks PLACE (something of the partition was lost)
APPEND = script(
    _MANY
    + """
local facts = 2 * tonumber(ARGV[3])
if ARGV[2] ~= '0' then
  local s = redis.call('HMGET', KEYS[1], 'life', 'serial')
  if not s[1] then return {'serial', 0} end
  if s[1] ~= ARGV[1] then return {'life', 0} end
  local last, serial = tonumber(s[2] or '0'), tonumber(ARGV[2])
  if last ~= serial and last ~= serial - 1 then return {'serial', last} end
end
local asked, each, i = {}, {}, 4 + facts
for p = 1, #KEYS - 2 do
  local first, remove, marks, changes = struct.unpack('>i8i8i8i8', ARGV[i + 2])
  local from = i + 3 + 2 * marks
  each[p] = {i = i, token = tonumber(ARGV[i + 1]), first = first, remove = remove, from = from, behind = from + changes}
  asked[2 * p - 1], asked[2 * p] = ARGV[i], ARGV[i] .. ':'
  i = from + changes
end
local known, now, gone = many('HMGET', KEYS[2], asked), {}, {}
local function put(field, value) now[#now + 1], now[#now + 2] = field, value end
for p, of in ipairs(each) do
  local token = 0
  of.last, of.bytes = 0, 0
  if known[2 * p - 1] then token, of.last, of.bytes = struct.unpack('>i8i8i8', known[2 * p - 1]) end
  if math.abs(token) < of.token then return {'lacks', p} end
  if token ~= of.token then return {'lost', p} end
  if of.first > of.last + 1 then return {'lacks', p} end
end
-- A full server refuses a script's first write or none: it must be one that takes room.
if ARGV[2] ~= '0' then
  local words = {'serial', ARGV[2]}
  for i = 4, 3 + facts, 2 do words[i - 1], words[i] = 'fact:' .. ARGV[i], ARGV[i + 1] end
  many('HSET', KEYS[1], words)
end
for p, of in ipairs(each) do
  local partition, bytes, new = ARGV[of.i], of.bytes, of.from + of.last + 1 - of.first
  if new < of.behind then
    for n = new, of.behind - 1 do
      redis.call('RPUSH', KEYS[p + 2], ARGV[n])
      bytes = bytes + #ARGV[n]
    end
    put(partition, struct.pack('>i8i8i8', of.token, of.last + of.behind - new, bytes))
  end
  for n = of.i + 3, of.from - 1, 2 do put(partition .. '=' .. ARGV[n], ARGV[n + 1]) end
  local came, removed = counts(known[2 * p])
  if of.remove > removed then
    for n = removed + 1, of.remove do gone[#gone + 1] = asked[2 * p] .. number(n) end
    put(asked[2 * p], set_counts(came, of.remove))
  end
end
many('HSET', KEYS[2], now)
many('HDEL', KEYS[2], gone)
return {'ok', 0}
"""
)

# Messages to partitions. KEYS ledger; ARGV number of partitions, (partition, number of its messages)*, messages, as
# many of each partition
POST = script(
    _MANY
    + """
local places, asked, now = tonumber(ARGV[1]), {}, {}
for p = 1, places do asked[p] = ARGV[2 * p] .. ':' end
local known, i = many('HMGET', KEYS[1], asked), 2 + 2 * places
for p = 1, places do
  local came, removed = counts(known[p])
  for n = came + 1, came + tonumber(ARGV[2 * p + 1]) do
    now[#now + 1], now[#now + 2] = asked[p] .. number(n), ARGV[i]
    came, i = n, i + 1
  end
  now[#now + 1], now[#now + 2] = asked[p], set_counts(came, removed)
end
many('HSET', KEYS[1], now)
return 1
"""
)

# The oldest messages to partitions, in one question: most have none.
# KEYS ledger; ARGV how many of each, partitions. -> (partition, messages that were ever removed before them, messages)*
UNREAD = script(
    _MANY
    + """
local asked, found, fields, ends = {}, {}, {}, {}
for p = 2, #ARGV do asked[p - 1] = ARGV[p] .. ':' end
for p, known in ipairs(many('HMGET', KEYS[1], asked)) do
  local came, removed = counts(known)
  if came > removed then
    for n = removed + 1, math.min(came, removed + tonumber(ARGV[1])) do fields[#fields + 1] = asked[p] .. number(n) end
    found[#found + 1], found[#found + 2], found[#found + 3] = ARGV[p + 1], removed, {}
    ends[#ends + 1] = #fields
  end
end
local messages, place = many('HMGET', KEYS[1], fields), 1
for n, each in ipairs(messages) do
  if n > ends[place] then place = place + 1 end
  local rows = found[3 * place]
  rows[#rows + 1] = each
end
return found
"""
)

# Of outboxes of which no message can come any more, but for those that an inbox has: how far they were read.
# KEYS ledger; ARGV partition, token, outboxes*. -> 1, or 0: there are messages, or the partition is another's
FORGET_MARKS = script(
    _MANY
    + """
local known, gone = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[1] .. ':'), {}
local came, removed = counts(known[2])
if came > removed or not known[1] or struct.unpack('>i8', known[1]) ~= tonumber(ARGV[2]) then return 0 end
for n = 3, #ARGV do gone[n - 2] = ARGV[1] .. '=' .. ARGV[n] end
many('HDEL', KEYS[1], gone)
return 1
"""
)

# What an inbox of format 2 has comes into the ledger, where today's are. KEYS inbox, ledger; ARGV partition
MOVE_INBOX = script(
    _MANY
    + """
local rows, now = redis.call('LRANGE', KEYS[1], 0, -1), {}
local came, removed = counts(redis.call('HGET', KEYS[2], ARGV[1] .. ':'))
for n, row in ipairs(rows) do now[2 * n - 1], now[2 * n] = ARGV[1] .. ':' .. number(came + n), row end
now[#now + 1], now[#now + 2] = ARGV[1] .. ':', set_counts(came + #rows, removed)
if #rows > 0 then many('HSET', KEYS[2], now) end
redis.call('DEL', KEYS[1])
return 1
"""
)
