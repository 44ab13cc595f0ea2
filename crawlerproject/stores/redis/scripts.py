"""What runs inside Redis: short scripts, each atomic, each harmless when it is run twice (an answer may get lost)."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from crawlerproject.rules.politeness import address_turns as turns


class Script(NamedTuple):
    """A Lua script and the name under which Redis remembers it."""

    text: str
    sha: str


def script(text: str) -> Script:
    """A script of a text without its comments."""
    lines = [line.strip() for line in text.strip().splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith("--"))
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


_NOW = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
"""

# KEYS any of the node that is asked. -> seconds, microseconds of the store's time
TELL_TIME = script(
    """
return redis.call('TIME')
"""
)

OF_LEASE = ("of", "copy", "copied", "added", "there", "crawl", "damaged")
"""What a lease says of its partition."""
HEAD = """
local function head(ledger, partition)
  local known = redis.call('HGET', ledger, partition)
  if not known then return 0, 0, 0 end
  return struct.unpack('>i8i8i8', known)
end
local function set_head(ledger, partition, token, journal, bytes)
  redis.call('HSET', ledger, partition, struct.pack('>i8i8i8', token, journal, bytes))
end
"""
"""What a ledger says of a partition (``keys.ledger_key``)."""

# KEYS lease, behind, ledger; ARGV worker, lease ms, partition.
# -> 0, holder, ms left | token, unsure, what is OF_LEASE, number of the last change, bytes of the journal, then of
# holders that did not let go in good order: token, worker ...
ACQUIRE = script(
    _NOW
    + HEAD
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'until', 'token')
local held = h[1] and h[1] ~= ''
if held and h[1] ~= ARGV[1] and tonumber(h[2]) > now then
  return {0, h[1], tonumber(h[2]) - now}
end
if held then redis.call('HSET', KEYS[2], h[3], h[1]) end
local token = redis.call('HINCRBY', KEYS[1], 'token', 1)
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'until', now + tonumber(ARGV[2]))
local _, journal, bytes = head(KEYS[3], ARGV[3])
set_head(KEYS[3], ARGV[3], token, journal, bytes)
local behind = redis.call('HGETALL', KEYS[2])
-- Until now (store time, ms) a holder that did not let go in good order may have asked without a trace.
if #behind > 0 then redis.call('HSET', KEYS[1], 'unsure', now) end
local f = redis.call('HMGET', KEYS[1], 'unsure', """
    + ", ".join(f"'{name}'" for name in OF_LEASE)
    + """)
local found = {token}
for n = 1, #f do found[n + 1] = f[n] or '' end
found[#found + 1], found[#found + 2] = journal, bytes
for _, value in ipairs(behind) do found[#found + 1] = value end
return found
"""
)

# KEYS lease; ARGV worker, token, lease ms. -> 1 renewed, 0 lost, -1 the lease is not known any more
RENEW = script(
    _NOW
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if not h[2] or tonumber(h[2]) < tonumber(ARGV[2]) then return -1 end
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'until', now + tonumber(ARGV[3]))
return 1
"""
)

# KEYS lease, ledger; ARGV worker, token, partition. -> 1 given back (or given back before), 0 lost
RELEASE = script(
    HEAD
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[2] ~= ARGV[2] then return 0 end
if h[1] == '' then return 1 end
if h[1] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'holder', '', 'until', 0)
local _, journal, bytes = head(KEYS[2], ARGV[3])
set_head(KEYS[2], ARGV[3], -h[2], journal, bytes)
return 1
"""
)

# KEYS lease, behind; ARGV worker, token, token of a predecessor of whom all that was decided is in the journal.
SETTLE = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], ARGV[3])
return 1
"""
)

# A hash of first captures keeps so many, and forgets any others; one in 64 of those that come looks whether it is time.
_KEEP_ORIGINAL = """
local function keep(key, digest, packed, most)
  if packed == '' then
    redis.call('HDEL', key, digest)
  elseif redis.call('HSETNX', key, digest, packed) == 1 and string.byte(digest, -1) < 4 then
    local over = redis.call('HLEN', key) - tonumber(most)
    if over > 0 then redis.call('HDEL', key, unpack(redis.call('HRANDFIELD', key, math.min(over, 1000)))) end
  end
end
"""

# First captures that count with a change of a worker, on a single server.
# KEYS the worker's state, then the hash of each; ARGV incarnation, serial of that change, how many a hash keeps,
# (digest, packed or '': it is lost)*. -> 1, or 0: the worker's last change is another one
ORIGINALS = script(
    _KEEP_ORIGINAL
    + """
local s = redis.call('HMGET', KEYS[1], 'life', 'serial')
if s[1] ~= ARGV[1] or (s[2] or '0') ~= ARGV[2] then return 0 end
for i = 2, #KEYS do keep(KEYS[i], ARGV[2 * i], ARGV[2 * i + 1], ARGV[3]) end
return 1
"""
)

# One that counts by now. KEYS its hash; ARGV how many that keeps, digest, packed or ''
ORIGINAL = script(
    _KEEP_ORIGINAL
    + """
keep(KEYS[1], ARGV[2], ARGV[3], ARGV[1])
return 1
"""
)

# A report looks at all workers when this one and as many as are at work have nothing to do, or when one came or went.
# KEYS seen, lives, quiet, activity, info, owners, done, round, facts, names
# ARGV worker, incarnation, lives before (comma; when it starts), lease ms, quiet, activity, info, partitions,
# taken (comma), left, the crawl's id, whether it starts ('1' or '0')
# -> now ms, 1 | 0 (another lives under this name) | -1 (what was known is forgotten), workers alive, all quiet,
# sum of activity, rank, done, reports of all workers since the crawl began
REPORT = script(
    _NOW
    + """
local me, lease = ARGV[1], tonumber(ARGV[4])
local known = redis.call('HGET', KEYS[2], me)
local crawl = redis.call('HMGET', KEYS[9], 'id', 'forgot')
if (crawl[1] or '') ~= ARGV[11] or crawl[2] or (not known and ARGV[12] == '0') then
  return {now, -1, 0, 0, 0, 0, 0, 0}
end
if known and known ~= ARGV[2] and not string.find(',' .. ARGV[3] .. ',', ',' .. known .. ',', 1, true) then
  local at = redis.call('ZSCORE', KEYS[1], me)
  if at and tonumber(at) > now - lease then return {now, 0, 0, 0, 0, 0, 0, 0} end
end
if known ~= ARGV[2] then
  redis.call('HSET', KEYS[2], me, ARGV[2])
  redis.call('DEL', KEYS[7])
  -- A new life holds nothing yet, whatever the last one said.
  local owners = redis.call('HGETALL', KEYS[6])
  for i = 1, #owners, 2 do
    if owners[i + 1] == me then redis.call('HDEL', KEYS[6], owners[i]) end
  end
else
  redis.call('HSET', KEYS[8], 'touched', now)
end
redis.call('ZADD', KEYS[1], now, me)
redis.call('ZADD', KEYS[10], 0, me)
if ARGV[5] == '1' then redis.call('HSET', KEYS[3], me, '1') else redis.call('HDEL', KEYS[3], me) end
redis.call('HSET', KEYS[4], me, ARGV[6])
redis.call('HSET', KEYS[5], me, ARGV[7])
for p in string.gmatch(ARGV[9], '%d+') do redis.call('HSET', KEYS[6], p, me) end
for p in string.gmatch(ARGV[10], '%d+') do
  if redis.call('HGET', KEYS[6], p) == me then redis.call('HDEL', KEYS[6], p) end
end
local alive = redis.call('ZCOUNT', KEYS[1], now - lease, '+inf')
local function each() return ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now - lease, '+inf')) end
-- Who is alive has reported, and stands among the names: as many are the same.
if redis.call('ZCARD', KEYS[10]) ~= alive then
  redis.call('DEL', KEYS[10])
  for _, name in each() do redis.call('ZADD', KEYS[10], 0, name) end
end
local rank = redis.call('ZLEXCOUNT', KEYS[10], '-', '(' .. me)
local quiet, sum, held, names = tonumber(ARGV[5]), 0, 0, {}
if quiet == 1 and redis.call('HLEN', KEYS[3]) < alive then quiet = 0 end
if quiet == 1 then
  for _, name in each() do
    names[name] = true
    if redis.call('HGET', KEYS[3], name) ~= '1' then quiet = 0 end
    sum = sum + tonumber(redis.call('HGET', KEYS[4], name) or '0')
  end
  for _, name in ipairs(redis.call('HVALS', KEYS[6])) do if names[name] then held = held + 1 end end
  if held < tonumber(ARGV[8]) then quiet = 0 end
end
local reports = redis.call('HINCRBY', KEYS[9], 'reports', 1)
return {now, 1, alive, quiet, sum, rank, redis.call('EXISTS', KEYS[7]), reports}
"""
)

# KEYS seen, quiet, activity, info, owners, round, names; ARGV worker: it leaves in good order.
LEAVE = script(
    """
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[7], ARGV[1])
if redis.call('ZCARD', KEYS[1]) == 0 then redis.call('HDEL', KEYS[6], 'touched') end
for n = 2, 4 do redis.call('HDEL', KEYS[n], ARGV[1]) end
local owners = redis.call('HGETALL', KEYS[5])
for i = 1, #owners, 2 do
  if owners[i + 1] == ARGV[1] then redis.call('HDEL', KEYS[5], owners[i]) end
end
return 1
"""
)

# KEYS done, round: nothing is left to do.
FINISH = script(
    """
redis.call('SET', KEYS[1], '1')
redis.call('HSET', KEYS[2], 'ended', '1')
return 1
"""
)

# A start: part of what the others at work do, or a round of its own when none is at work or all is done.
# KEYS round, scores, chosen; ARGV recrawl ('1' or '0'), lease ms, run, its own round until now, epoch seconds, budget
# -> number, epoch seconds, budget | 0: those at work do not do the same
BEGIN_ROUND = script(
    _NOW
    + """
local r = redis.call('HMGET', KEYS[1], 'number', 'recrawl', 'run', 'ended', 'touched', 'at', 'budget')
local live = r[4] ~= '1' and r[5] and tonumber(r[5]) > now - tonumber(ARGV[2])
local same = r[1] and r[2] == ARGV[1]
if live and r[1] and not same then return {0} end
if same and (live or r[1] == ARGV[4] or (ARGV[3] ~= '' and r[3] == ARGV[3])) then
  redis.call('HSET', KEYS[1], 'touched', now, 'ended', '0')
  return {tonumber(r[1]), r[6], r[7]}
end
redis.call('DEL', KEYS[2], KEYS[3])
local number = redis.call('HINCRBY', KEYS[1], 'number', 1)
redis.call('HSET', KEYS[1], 'recrawl', ARGV[1], 'run', ARGV[3], 'ended', '0', 'touched', now, 'at', ARGV[5],
  'budget', ARGV[6])
return {number, ARGV[5], ARGV[6]}
"""
)

# Workers that share an address take turns by the rule of rules/politeness/address_turns.py, of which this is the rest.
# KEYS turns exists once one has waited; its field "state" is an AddressTurns: "take", "used" and "from" are its
# LongRequests, "places" stand in their order. All times are in ms.
_TURNS = (
    f"""
local long, apart, longest = {_ms(turns.LONG_SECONDS)}, {turns.LONG_APART}, {_ms(turns.LONGEST_APART_SECONDS)}
local soonest, latest = {_ms(turns.SOONEST_SECONDS)}, {_ms(turns.LATEST_SECONDS)}
local kept, most, newest = {_ms(turns.KEPT_SECONDS)}, {turns.MOST_DOMAINS}, {turns.NEWEST_COUNTS}
"""
    + """
local packed = redis.call('HGET', KEYS[2], 'state')
if redis.call('PTTL', KEYS[2]) > 2 * longest then packed = nil end -- the clock was set back: its moments are far off
local s = packed and cmsgpack.unpack(packed) or {used = {}, from = 0, places = {}, clock = 0, ['until'] = {}}
s.take = s.take or {}
local function keep()
  redis.call('HSET', KEYS[2], 'state', cmsgpack.pack(s))
  redis.call('PEXPIRE', KEYS[2], 2 * longest)
end
local function remove(worker)
  for n = #s.places, 1, -1 do if s.places[n].worker == worker then table.remove(s.places, n) end end
end
-- AddressTurns.ask; rests: ms, held: ms or nil
local function ask(worker, domain, quick_waits, rests, held)
  if s.used[domain] and s.from > now then
    remove(worker)
    return now - s.from
  end
  local ours
  for n, each in ipairs(s.places) do
    if each.worker == worker then
      if each.domain ~= domain then s.places[n] = {worker = worker, domain = domain, start = s.clock} end
      ours = s.places[n]
    end
  end
  if not ours then
    ours = {worker = worker, domain = domain, start = s.clock}
    s.places[#s.places + 1] = ours
  end
  local function starts(each) return math.max(each.start, s['until'][each.domain] or 0) end
  ours.start = starts(ours)
  local wait
  if held then
    wait = math.min(math.max(math.floor(held / 2), soonest), latest)
  elseif rests > 0 then
    wait = rests
  else
    local first, slow
    for _, each in ipairs(s.places) do
      if each == ours or each['until'] > now then
        local used = s.used[each.domain]
        if used and s.from <= now then
          local least = slow and s.used[slow.domain] or used + 1
          if used < least or (used == least and starts(each) < starts(slow)) then slow = each end
        elseif not used and (not first or starts(each) < starts(first)) then
          first = each
        end
      end
    end
    if (slow or first) == ours then
      if not s.used[domain] then s.clock = ours.start end
      remove(worker)
      return 0
    end
    wait = soonest
  end
  ours['until'], ours.quick = now + wait + kept, quick_waits
  return wait
end
local function count(of)
  local found = 0
  for _ in pairs(of) do found = found + 1 end
  return found
end
-- LongRequests.took
local function took(domain, ms, quick_waits)
  local known = s.take[domain]
  if not known and count(s.take) >= most then
    for each in pairs(s.take) do if not s.used[each] then s.take[each] = nil end end
  end
  local typical = known and known + (ms - known) / newest or ms
  s.take[domain] = typical
  if typical <= long then
    s.used[domain] = nil
    return
  end
  if not s.used[domain] then
    local highest, lowest = 0, nil
    for _, used in pairs(s.used) do
      highest, lowest = math.max(highest, used), math.min(lowest or used, used)
    end
    s.used[domain] = known and (lowest or 0) or highest
  end
  s.used[domain] = s.used[domain] + ms
  if quick_waits then s.from = now + math.min(apart * ms, longest) end
end
-- AddressTurns.held; took_ms: of the request, or nil
local function held(domain, ms, took_ms, rest, quick_waits)
  for n = #s.places, 1, -1 do
    local each = s.places[n]
    if each['until'] <= now then table.remove(s.places, n)
    else quick_waits = quick_waits or each.quick or (each.domain ~= domain and not s.used[each.domain]) end
  end
  if took_ms then took(domain, took_ms, quick_waits) end
  s['until'][domain] = math.max(s['until'][domain] or 0, s.clock) + ms + rest
  if count(s['until']) > most then
    for each, till in pairs(s['until']) do if till <= s.clock then s['until'][each] = nil end end
  end
end
"""
)

# KEYS address, turns; ARGV mark of the request, ms of a reservation, mark of the worker's rests, domain, whether a
# quick one waits in the worker's line ('1' or '0'), ms of a rest.
# -> 0 reserved, else as AddressTurns.ask, in ms
RESERVE = script(
    _NOW
    + _TURNS
    + """
local by, most_ms = redis.call('GET', KEYS[1]), ARGV[2] + ARGV[6]
-- No reservation and no rest lasts longer, but where the clock was set back.
if redis.call('PTTL', KEYS[1]) > most_ms then redis.call('PEXPIRE', KEYS[1], most_ms) end
-- The worker that asked last kept the rest by its own clock, which began when the answer ended.
local others = by and by ~= ARGV[1] and by ~= ARGV[3]
if others or (packed and by ~= ARGV[1]) then
  local rests, since = 0, nil
  if others then
    rests = math.max(1, redis.call('PTTL', KEYS[1]))
    if string.sub(by, -5) ~= ':rest' then since = ARGV[2] - rests end
  end
  local wait = ask(ARGV[3], ARGV[4], ARGV[5] == '1', rests, since)
  keep()
  if wait ~= 0 then return wait end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
"""
)

# KEYS address, turns; ARGV mark of the request, ms of rest (0: none), mark of the worker's rests, ms of a reservation,
# domain, whether a quick one waits in the worker's line, ms that the request took or ''.
REST = script(
    _NOW
    + _TURNS
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if packed then
  held(ARGV[5], ARGV[4] - redis.call('PTTL', KEYS[1]), tonumber(ARGV[7]), tonumber(ARGV[2]), ARGV[6] == '1')
  keep()
end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2]) end
return 1
"""
)

# With each question about addresses, behind it: whether its answers are of a server that knows what there was before.
# KEYS facts; ARGV the crawl's id -> how often addresses were asked about since the crawl began, -1: it is not known;
# now ms; when its clock was set forward last, as a worker has noticed, or 0
COUNT_QUESTIONS = script(
    _NOW
    + """
local h = redis.call('HMGET', KEYS[1], 'id', 'set')
if (h[1] or '') ~= ARGV[1] then return {-1, now, 0} end
return {redis.call('HINCRBY', KEYS[1], 'questions', 1), now, tonumber(h[2] or '0')}
"""
)

# Of a block of fingerprints the rows are one value, the oldest first. Beside those of table 0 its pages stand, each as
# its length (two bytes, high first) and that many bytes.
# KEYS hashes; ARGV bytes that the rows of a block may have, then for each hash: field of the rows, row, field of the
# pages, page or '' (a table without pages)
ADD_TEXTS = script(
    """
for h, key in ipairs(KEYS) do
  local i = 4 * h - 2
  local field, row, page = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local rows = redis.call('HGET', key, field) or ''
  local at = string.find(rows, row, 1, true)
  while at and (at - 1) % #row ~= 0 do at = string.find(rows, row, at + 1, true) end
  if not at then
    local over = math.max(0, #rows + #row - tonumber(ARGV[1]))
    rows = string.sub(rows, over + 1) .. row
    if page == '' then
      redis.call('HSET', key, field, rows)
    else
      local pages, cut = redis.call('HGET', key, ARGV[i + 2]) or '', 1
      for _ = 1, over / #row do cut = cut + 2 + string.byte(pages, cut) * 256 + string.byte(pages, cut + 1) end
      redis.call('HSET', key, field, rows, ARGV[i + 2], string.sub(pages, cut) .. page)
    end
  end
end
return 1
"""
)

# KEYS hashes; ARGV the field of each. -> their values
ROWS_OF_TEXTS = script(
    """
local found = {}
for h, key in ipairs(KEYS) do found[h] = redis.call('HGET', key, ARGV[h]) end
return found
"""
)

# A worker's part of a sum that the crawl may spend; the words are those of rules/fleet_shares.py, and so is the rule.
# KEYS granted, committed, hungry, lives, seen; ARGV worker, incarnation, lease ms, most, committed, used, wants, gives,
# least, largest
# -> granted, committed by all, whether another is hungry, then names of dead workers that have what is wanted in vain
SHARE = script(
    _NOW
    + """
local me = ARGV[1]
local most, committed, used = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('HGET', KEYS[4], me) ~= ARGV[2] then return {0, 0, 0} end
local mine = math.max(used, tonumber(redis.call('HGET', KEYS[1], me) or '0'))
if ARGV[8] == '1' then mine = used end
local all, others, dead = redis.call('HGETALL', KEYS[1]), 0, {}
local alive, workers = {}, redis.call('ZRANGEBYSCORE', KEYS[5], now - tonumber(ARGV[3]), '+inf')
for _, name in ipairs(workers) do alive[name] = true end
for i = 1, #all, 2 do
  if all[i] ~= me then
    local has = tonumber(all[i + 1])
    others = others + has
    local spent = tonumber(redis.call('HGET', KEYS[2], all[i]) or '0')
    if not alive[all[i]] and has > spent then dead[#dead + 1] = all[i] end
  end
end
local left = most - others - mine
if ARGV[7] == '1' and left > 0 then
  local part = math.max(tonumber(ARGV[9]), math.floor(left / (2 * math.max(1, #workers))))
  mine = mine + math.min(left, tonumber(ARGV[10]), part)
end
redis.call('HSET', KEYS[1], me, mine)
redis.call('HSET', KEYS[2], me, committed)
local vain = ARGV[7] == '1' and left <= 0
if vain then redis.call('HSET', KEYS[3], me, '1') else redis.call('HDEL', KEYS[3], me) end
local sum, hungry = 0, 0
for _, value in ipairs(redis.call('HVALS', KEYS[2])) do sum = sum + tonumber(value) end
for _, name in ipairs(redis.call('HKEYS', KEYS[3])) do if name ~= me and alive[name] then hungry = 1 end end
local found = {mine, sum, hungry}
if vain then for _, name in ipairs(dead) do found[#found + 1] = name end end
return found
"""
)

# From here on what a worker of this incarnation writes is refused. KEYS its state; ARGV incarnation, field of a fact.
# -> the fact or '' ; nil when it has another incarnation by now
END_LIFE = script(
    """
local life = redis.call('HGET', KEYS[1], 'life') or ''
if life ~= ARGV[1] and life ~= '' then return false end
if life ~= '' then redis.call('HSET', KEYS[1], 'life', '') end
return redis.call('HGET', KEYS[1], ARGV[2]) or ''
"""
)

# KEYS granted, committed, hungry, lives; ARGV worker, incarnation that was ended, how much it has spent
TAKE_BACK = script(
    """
if (redis.call('HGET', KEYS[4], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
"""
)

# When the crawl's workers began: none was at work before. KEYS seen, facts; ARGV lease ms. -> ms since then
BEGAN = script(
    _NOW
    + """
local alive = redis.call('ZCOUNT', KEYS[1], now - tonumber(ARGV[1]), '+inf')
local began = tonumber(redis.call('HGET', KEYS[2], 'began'))
if not began or alive == 0 then
  began = now
  redis.call('HSET', KEYS[2], 'began', now)
end
return now - began
"""
)

# The worker that hubs reach: the one that said so first, until it is at work no more. KEYS facts, seen; ARGV worker,
# lease ms. -> worker, the one before it
LISTEN = script(
    _NOW
    + """
local before = redis.call('HGET', KEYS[1], 'listener') or ''
if before ~= '' and before ~= ARGV[1] then
  local at = redis.call('ZSCORE', KEYS[2], before)
  if at and tonumber(at) > now - tonumber(ARGV[2]) then return {before, before} end
end
redis.call('HSET', KEYS[1], 'listener', ARGV[1])
return {ARGV[1], before}
"""
)
