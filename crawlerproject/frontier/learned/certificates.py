"""Which hosts have shown a bad certificate, and what was wrong with it: part of the host's record in the store."""

from __future__ import annotations

import orjson

from crawlerproject.items import Page
from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import FactReader

_PREFIX = "certificate/"  # and the host key: the name of the fact


def bad_certificate(store: FactReader, host: str) -> tuple[str, float] | None:
    """What was wrong ("expired: …") and when (epoch seconds); None when nothing is known to be."""
    packed = store.fact(_PREFIX + host)
    if not packed:
        return None
    what, at = orjson.loads(packed)
    return str(what), float(at)


class BadCertificates:
    """Notes bad certificates as pages end, and takes the note back when the host has mended it."""

    def __init__(self, store: FactReader) -> None:
        self._store = store
        self._changed: dict[str, bytes] = {}
        self._storing: dict[str, bytes] = {}  # in a commit that has not ended

    def learn(self, page: Page, now: float) -> None:
        """Take in how a page ended."""
        host = page.lease.row.host
        if page.reason is Reason.TLS_CERTIFICATE:
            self._changed[host] = orjson.dumps((page.error, now))
        # A robots.txt is the first answer of a host after a while: cheaper than a look at every page.
        elif page.lease.is_robots and page.status and page.url.startswith("https://") and self._known(host):
            self._changed[host] = b""

    def _known(self, host: str) -> bool:
        return host in self._changed or host in self._storing or bad_certificate(self._store, host) is not None

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores."""
        self._storing |= self._changed
        self._changed = {}
        return [(_PREFIX + host, packed) for host, packed in self._storing.items()]

    def stored(self) -> None:
        """The last ``facts`` have reached the store."""
        self._storing.clear()
