"""Rotates the proxies of rendered pages and rests one that fails."""

from __future__ import annotations

from collections.abc import Sequence

# Failures in a row after which a proxy rests, and for how long (ours: time enough for a repair, short for a crawl).
_MAX_FAILURES = 3
_REST_SECONDS = 600.0


class RenderProxies:
    """``RENDER_PROXIES`` in turn. ``now`` is monotonic seconds."""

    def __init__(self, proxies: Sequence[str]) -> None:
        self._proxies = list(proxies)
        self._failures = dict.fromkeys(proxies, 0)
        self._rests_until = dict.fromkeys(proxies, 0.0)
        self._turn = 0

    def choose(self, now: float) -> str:
        """The next proxy that does not rest; when all rest, the one whose rest ends first; "" without proxies."""
        if not self._proxies:
            return ""
        for _ in self._proxies:
            proxy = self._proxies[self._turn % len(self._proxies)]
            self._turn += 1
            if self._rests_until[proxy] <= now:
                return proxy
        # Never without one: the operator may have a reason to hide the address of this machine.
        return min(self._proxies, key=self._rests_until.__getitem__)

    def answered(self, proxy: str, now: float, *, failed: bool) -> None:
        """Take note that a request through a proxy has ended; ``failed``: through the proxy's fault."""
        if proxy not in self._failures:
            return
        self._failures[proxy] = self._failures[proxy] + 1 if failed else 0
        if self._failures[proxy] >= _MAX_FAILURES:
            self._failures[proxy] = 0
            self._rests_until[proxy] = now + _REST_SECONDS
