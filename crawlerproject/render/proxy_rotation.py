"""Which proxy a browser context's requests go through, and which one rests."""

from __future__ import annotations

from collections.abc import Sequence

# Failures in a row that send a proxy to rest, and for how long (ours: long enough to be mended, short for a crawl).
_MAX_FAILURES = 3
_REST_SECONDS = 600.0


class RenderProxies:
    """``RENDER_PROXIES`` in turn; ``now`` in any seconds that grow."""

    def __init__(self, proxies: Sequence[str]) -> None:
        self._proxies = list(proxies)
        self._failures = dict.fromkeys(proxies, 0)
        self._rests_until = dict.fromkeys(proxies, 0.0)
        self._turn = 0

    def choose(self, now: float) -> str:
        """The next proxy that does not rest, "" when none are set; when all rest, the one that rests least."""
        if not self._proxies:
            return ""
        for _ in self._proxies:
            proxy = self._proxies[self._turn % len(self._proxies)]
            self._turn += 1
            if self._rests_until[proxy] <= now:
                return proxy
        # Never without one: the operator may have a reason not to be seen at his own address.
        return min(self._proxies, key=self._rests_until.__getitem__)

    def answered(self, proxy: str, now: float, *, failed: bool) -> None:
        """A request through a proxy has ended; ``failed``: by the proxy's fault."""
        if proxy not in self._failures:
            return
        self._failures[proxy] = self._failures[proxy] + 1 if failed else 0
        if self._failures[proxy] >= _MAX_FAILURES:
            self._failures[proxy] = 0
            self._rests_until[proxy] = now + _REST_SECONDS
