"""The store in dictionaries keeps the contract."""

from __future__ import annotations

import pytest

from tests.stores.conformance import ContentContract, DueContract, MessageContract, StoreContract
from tests.stores.memory_store import MemoryStore


class TestMemoryStore(StoreContract, ContentContract, DueContract, MessageContract):
    """The contract, in memory."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        """A new store."""
        return MemoryStore()
