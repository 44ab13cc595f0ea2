"""The bounds of one fetch, as one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlerproject.fetch.http1 import MAX_BODY_BYTES

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


@dataclass(frozen=True, slots=True)
class Limits:
    """Every field is the FETCH_* setting of the same name; see settings.py for the reasons."""

    max_bytes: int = MAX_BODY_BYTES
    timeout_seconds: float = 30.0  # connecting included
    connect_timeout_seconds: float = 10.0  # TCP and TLS
    first_byte_timeout_seconds: float = 20.0
    min_bytes_per_second: float = 100.0
    slow_grace_seconds: float = 10.0
    keepalive_seconds: float = 8.0
    max_idle_connections: int = 2000

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Limits:
        """Read the FETCH_* settings."""
        return cls(
            max_bytes=settings.getint("FETCH_MAX_BYTES", MAX_BODY_BYTES),
            timeout_seconds=settings.getfloat("FETCH_TIMEOUT_SECONDS", 30.0),
            connect_timeout_seconds=settings.getfloat("FETCH_CONNECT_TIMEOUT_SECONDS", 10.0),
            first_byte_timeout_seconds=settings.getfloat("FETCH_FIRST_BYTE_TIMEOUT_SECONDS", 20.0),
            min_bytes_per_second=settings.getfloat("FETCH_MIN_BYTES_PER_SECOND", 100.0),
            slow_grace_seconds=settings.getfloat("FETCH_SLOW_GRACE_SECONDS", 10.0),
            keepalive_seconds=settings.getfloat("FETCH_KEEPALIVE_SECONDS", 8.0),
            max_idle_connections=settings.getint("FETCH_MAX_IDLE_CONNECTIONS", 2000),
        )
