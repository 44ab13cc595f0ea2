"""How many requests may be under way while more answers come than are read.

A processor that is behind gains nothing by asking for more: a thousand answers in memory, two hundred objects each,
make Python's collector slow and each of them late. Answers that wait to be read say that it is behind. Then one request
goes out for two that have ended; while none waits, the window opens slowly. So it finds by itself how many the distance
to the servers needs: a simulation with answers that take up to a hundred turns of the loop has no idle turn.
"""

from __future__ import annotations

# Answers that wait: a tenth of a second's work, so that the processor always has one to read (ours).
_BEHIND = 64
# Never fewer: at 50 ms an answer 2,500 requests a second, more than one process can read (ours).
LEAST = 128
# By so many it opens in a second; four times as many made it swing between too few and too many (simulated).
_OPENS_A_SECOND = 200.0
# Not asked for longer: nothing was free to be sent, and nothing is known of what the processor could do.
_LONGEST_SECONDS = 0.1


class SendWindow:
    """``open`` before each request, ``sent`` after it. ``now`` is seconds."""

    def __init__(self) -> None:
        self._most = float(LEAST)
        self._under_way = 0  # as far as it is known here
        self._asked_at = 0.0

    def open(self, under_way: int, unread: int, now: float) -> bool:
        """Whether one more may be sent while ``under_way`` are, ``unread`` of them answers that wait to be read."""
        ended = max(self._under_way - under_way, 0)
        self._under_way = under_way
        if unread >= _BEHIND:
            self._most = max(min(self._most, under_way + ended) - ended / 2, _BEHIND)
        elif not unread:
            opens = _OPENS_A_SECOND * min(max(now - self._asked_at, 0.0), _LONGEST_SECONDS)
            self._most = min(self._most + opens, max(LEAST, 2 * under_way))
        self._asked_at = now
        return under_way < self._most

    def sent(self) -> None:
        """One more was sent."""
        self._under_way += 1
