"""What runs inside Redis for journals, copies and inboxes; as in ``scripts.py``, harmless when it is run twice."""

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

# Adds changes to journals, each once, however often it is called, and removes messages whose effect they hold. All or
# nothing: what a page has named is known no later than that the page is done, and a page is done with the length of the
# archive that has it. In a cluster it adds what ``scripts.JOURNAL`` has decided, to one partition at a time.
# KEYS the worker's state (where all is one change), then for each partition: lease, journal, inbox, read
# ARGV worker, incarnation, serial (0: it was decided before), number of facts, (name, value)*, then for each partition:
# token, number of the first change, messages that were ever removed from the inbox, numbers of marks and of changes,
# (outbox, number of its last message that took effect)*, changes*
# -> ok | life | serial N (not this one nor the one before; 0: nothing is known of the worker)
# | lost PLACE (1 ..: the lease is another's) | lacks PLACE (something of the partition was lost)
APPEND = script(
    """
local facts = 2 * tonumber(ARGV[4])
local function each(visit)
  local i = 5 + facts
  for p = 1, (#KEYS - 1) / 4 do
    local marks, changes = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
    local wrong = visit(p, 4 * p - 2, i, marks, changes)
    if wrong then return wrong end
    i = i + 5 + 2 * marks + changes
  end
end
if ARGV[3] ~= '0' then
  local s = redis.call('HMGET', KEYS[1], 'life', 'serial')
  if not s[1] then return {'serial', 0} end
  if s[1] ~= ARGV[2] then return {'life', 0} end
  local last, serial = tonumber(s[2] or '0'), tonumber(ARGV[3])
  if last ~= serial and last ~= serial - 1 then return {'serial', last} end
end
local held = {}
local wrong = each(function(p, k, i)
  local h = redis.call('HMGET', KEYS[k], 'holder', 'token', 'journal', 'bytes', 'removed')
  held[p] = h
  if not h[2] or tonumber(h[2]) < tonumber(ARGV[i]) then return {'lacks', p} end
  if h[1] ~= ARGV[1] or h[2] ~= ARGV[i] then return {'lost', p} end
  if tonumber(ARGV[i + 1]) > tonumber(h[3] or '0') + 1 then return {'lacks', p} end
end)
if wrong then return wrong end
-- A full server refuses a script's first write or none: it must be one that takes room.
if ARGV[3] ~= '0' then redis.call('HSET', KEYS[1], 'serial', ARGV[3]) end
for i = 5, 4 + facts, 2 do redis.call('HSET', KEYS[1], 'fact:' .. ARGV[i], ARGV[i + 1]) end
each(function(p, k, i, marks, changes)
  local h, now = held[p], {}
  local last, first, bytes = tonumber(h[3] or '0'), tonumber(ARGV[i + 1]), 0
  local at = i + 5 + 2 * marks
  for n = at + last + 1 - first, at + changes - 1 do
    redis.call('RPUSH', KEYS[k + 1], ARGV[n])
    last, bytes = last + 1, bytes + #ARGV[n]
  end
  if bytes > 0 then now = {'journal', last, 'bytes', tonumber(h[4] or '0') + bytes} end
  if marks > 0 then redis.call('HSET', KEYS[k + 3], unpack(ARGV, i + 5, at - 1)) end
  local removed, remove = tonumber(h[5] or '0'), tonumber(ARGV[i + 2])
  if remove > removed then
    redis.call('LTRIM', KEYS[k + 2], remove - removed, -1)
    now[#now + 1], now[#now + 2] = 'removed', remove
  end
  if #now > 0 then redis.call('HSET', KEYS[k], unpack(now)) end
end)
return {'ok', 0}
"""
)

# The oldest messages of inboxes, in one question: most are empty.
# KEYS (inbox, lease)*; ARGV place of the last message. -> (place of a partition that has some, messages that were ever
# removed before them, messages)*
UNREAD = script(
    """
local found = {}
for p = 1, #KEYS / 2 do
  local rows = redis.call('LRANGE', KEYS[2 * p - 1], 0, ARGV[1])
  if #rows > 0 then
    local n = #found
    found[n + 1], found[n + 2], found[n + 3] = p, redis.call('HGET', KEYS[2 * p], 'removed') or '0', rows
  end
end
return found
"""
)
