"""What the memberships of all kinds name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlerproject.stores.redis.buffer.store import BufferedStore
    from crawlerproject.stores.rocks.store import RocksStore

    Store = BufferedStore | RocksStore
