"""The index of archived texts that several processes share: what is near whose text, whatever its host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Text(NamedTuple):
    """A page that repeats no other, by its text."""

    value: int  # its fingerprint, 64 bits
    key: bytes  # the page's, 24 bytes
    url: str


class NearText(NamedTuple):
    """A page whose fingerprint is near the one that was asked about."""

    bits: int  # in which they differ
    key: bytes  # the page's
    url: str


class TextIndex(Protocol):
    """Blocking, and safe to use from any one thread at a time. Raises StorageError."""

    def exchange(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """Add texts, each as often as it pleases; then for each value what is within ``bits`` of it, nearest first.

        ``bits``: three at most. What was added is found by every later question, of any process.
        """
