"""Which hosts have shown a bad certificate, and what was wrong with it."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from crawlerproject.frontier.learned.host_model import HostModel
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import FactReader, HostFact

# Hosts whose certificates are in memory, some 200 bytes each: those that were asked for robots.txt lately.
_KEPT = 5_000


class BadCertificate(NamedTuple):
    """What was wrong with a host's certificate; nothing, as far as is known, when ``error`` is empty."""

    error: str = ""  # "expired: …"
    seen_at: float = 0.0  # epoch seconds

    def pack(self) -> bytes:
        """As the store keeps it."""
        return orjson.dumps(tuple(self)) if self.error else b""

    @classmethod
    def unpack(cls, packed: bytes) -> BadCertificate:
        """What ``pack`` wrote."""
        error, seen_at = orjson.loads(packed)
        return cls(str(error), float(seen_at))


class BadCertificates(HostModel[BadCertificate]):
    """Notes bad certificates as pages end, and takes the note back when the host has mended it."""

    def __init__(self, store: FactReader) -> None:
        super().__init__(store, HostFact.CERTIFICATE, BadCertificate, _KEPT)

    def learn(self, visit: Visit, now: float) -> None:
        """Take in a visit that ended ``now`` (epoch seconds)."""
        row = visit.row
        if visit.reason is Reason.TLS_CERTIFICATE:
            self.replace(row.host, BadCertificate(visit.error, now))
        # A robots.txt is the first answer of a host after a while: cheaper than a look at every page.
        elif row.kind.is_robots and visit.status and row.url.startswith("https://") and self.of(row.host).error:
            self.replace(row.host, BadCertificate())
