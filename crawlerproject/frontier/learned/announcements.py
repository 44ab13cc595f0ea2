"""Pages that a sitemap, a feed or a push says have changed: believed as far as their host earned it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crawlerproject.frontier.learned.revisit_queue import DueRevisit, again, looked_at
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.rules.url.urls import Address
from crawlerproject.runtime.lru import LruCache

if TYPE_CHECKING:
    from crawlerproject.frontier.admission import Admission
    from crawlerproject.frontier.learned.revisits import Revisits
    from crawlerproject.frontier.state import FrontierState
    from crawlerproject.stores.protocols import PageRecord

# A host that has announced nothing before is believed so often in one run (ours): enough to find out.
_CREDIT = 20
# Hosts whose credit is remembered, those asked last: 15 MB. One that is forgotten has it anew.
_HOSTS_KEPT = 100_000
# Clocks differ; a date further ahead than this is a mistake.
_AHEAD_SECONDS = DAY_SECONDS


class Announcements:
    """Marks known pages as changed; in a recrawl they are queued at once."""

    def __init__(self, state: FrontierState, admission: Admission, revisits: Revisits, *, recrawl: bool) -> None:
        self._state = state
        self._admission = admission
        self._revisits = revisits
        self._recrawl = recrawl
        self._believed: LruCache[str, int] = LruCache(_HOSTS_KEPT)  # pages by host, in this run

    def changed(self, pages: Iterable[tuple[Address, float]], now: float) -> int:
        """Take word that pages changed at these moments (epoch seconds). How many were believed."""
        believed = [found for address, at in pages if (found := self._known(address, at, now)) is not None]
        count = len(believed)
        if self._recrawl:
            count = self._admission.again((again(page, now) for page in believed), now)
        else:
            self._state.changes.pages.extend(
                (page.key, page.record._replace(history=page.history.pack())) for page in believed
            )
        self._state.announced += count
        return count

    def _known(self, address: Address, changed_at: float, now: float) -> DueRevisit | None:
        if changed_at > now + _AHEAD_SECONDS or not self._state.ownership.mine(address.host):
            return None
        record: PageRecord | None = self._state.store.page(address.key, address.host)
        if record is None:
            return None
        history = History.unpack(record.history)
        if not history.seen_at or history.queued_at or history.announced:
            return None
        if changed_at <= looked_at(record, history):
            return None
        host = self._revisits.of(address.host)
        believed = self._believed.get(address.host) or 0
        if not host.believes_lastmod or believed >= _CREDIT + 2 * host.lastmod_kept:
            return None
        self._believed[address.host] = believed + 1
        changed = history._replace(announced=1.0, fresh_until=min(history.fresh_until, changed_at))
        return DueRevisit(0.0, address.key, record, changed)
