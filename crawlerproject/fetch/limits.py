"""The bounds of one fetch, as one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MAX_IDLE_CONNECTIONS = 2000
"""Twice the default of FRONTIER_MAX_IN_FLIGHT; some 20 KB each with TLS (ours)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The FETCH_* settings of the same names, and what no setting changes."""

    max_bytes: int
    timeout_seconds: float  # connecting included
    connect_timeout_seconds: float  # TCP and TLS
    first_byte_timeout_seconds: float
    min_bytes_per_second: float
    slow_grace_seconds: float
    # Longer than most pauses of the quick presets; servers commonly close after 5 to 75 s themselves (ours).
    keepalive_seconds: float = 8.0
    max_idle_connections: int = MAX_IDLE_CONNECTIONS

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Limits:
        """Read the FETCH_* settings."""
        return cls(
            max_bytes=settings.getint("FETCH_MAX_BYTES"),
            timeout_seconds=settings.getfloat("FETCH_TIMEOUT_SECONDS"),
            connect_timeout_seconds=settings.getfloat("FETCH_CONNECT_TIMEOUT_SECONDS"),
            first_byte_timeout_seconds=settings.getfloat("FETCH_FIRST_BYTE_TIMEOUT_SECONDS"),
            min_bytes_per_second=settings.getfloat("FETCH_MIN_BYTES_PER_SECOND"),
            slow_grace_seconds=settings.getfloat("FETCH_SLOW_GRACE_SECONDS"),
        )
