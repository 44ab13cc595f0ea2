"""The store in dictionaries keeps the contract."""

from __future__ import annotations

import pytest

from crawlerproject.stores.memory import MemoryStore
from tests.stores.conformance import ContentContract, DueContract, MessageContract, StoreContract


class TestMemoryStore(StoreContract, ContentContract, DueContract, MessageContract):
    """The contract, in memory."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        """A new store."""
        return MemoryStore()
