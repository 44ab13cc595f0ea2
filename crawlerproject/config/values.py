"""Reads settings into the values that the code wants: lists, who we are, the pace.

They may come from a command line, where everything is a string.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlerproject.config.settings_table import LARGEST, SETTINGS
from crawlerproject.errors import OperatorError
from crawlerproject.rules.consent.verdict import PURPOSES, Source, asked_documents, obeys
from crawlerproject.rules.politeness.pauses import PacePreset, RestLimits, pace_preset
from crawlerproject.rules.url.refused_urls import own_ranges
from crawlerproject.stores.operator_files.user_settings import user_path

if TYPE_CHECKING:
    from crawlerproject.rules.identity.key_ring import KeyRing

NO_BOUND_BYTES = 2**62
"""Stands for Scrapy's DOWNLOAD_MAXSIZE = 0, which means no bound."""
# Of Scrapy's downloader, which holds all requests in one slot (settings.py).
_CONCURRENCY = ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
# A crawler that Scrapy is given is given its project's settings once more (CrawlerRunner.create_crawler).
_ABOVE_PROJECT = SETTINGS_PRIORITIES["project"] + 1


def let_in_flight(settings: BaseSettings) -> None:
    """Have Scrapy's downloader take as many requests at a time as FRONTIER_MAX_IN_FLIGHT allows, with its priority.

    A concurrency given for one spider or on the command line stands. Before the crawler freezes its settings.
    """
    try:
        in_flight = settings.getint("FRONTIER_MAX_IN_FLIGHT")
    except ValueError:  # no number: the start refuses it (crawl/start/preflight.py)
        return
    for name in _CONCURRENCY if in_flight > 0 else ():
        settings.set(name, in_flight, _ABOVE_PROJECT)


def list_of(settings: BaseSettings, name: str) -> list[str]:
    """A list of strings, also written as JSON (``["a", "b"]``) or with commas (``a,b``); OperatorError otherwise."""
    try:
        return list_of_value(settings.get(name))
    except ValueError as error:
        raise OperatorError(f"{name} is {error}") from None


def list_of_value(value: Any) -> list[str]:
    """A setting's value as a list of strings; ValueError says what it is and how to write it."""
    if not value:
        return []
    parts = value
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part.strip() for part in value.split(",") if part.strip()]
        try:
            parts = json.loads(value)
        except ValueError:
            parts = None
    if not isinstance(parts, (list, tuple, set, frozenset)):
        raise ValueError(f'{value!r}; write it as ["a", "b"] or a,b.')
    return [str(part) for part in parts]


def ranges_of(settings: BaseSettings, more: Iterable[str] = ()) -> list[IPv4Network | IPv6Network]:
    """``IDENTITY_RANGES`` and ``more``: from where the crawler asks. Raises OperatorError."""
    try:
        return own_ranges([*list_of(settings, "IDENTITY_RANGES"), *more])
    except ValueError as error:
        raise OperatorError(
            f"IDENTITY_RANGES has {error}; give the public addresses or networks (CIDR) from which you crawl."
        ) from None


@dataclass(slots=True, frozen=True)
class Identity:
    """One crawler's name and how to reach its operator."""

    token: str  # product token, RFC 9309 2.2.1
    user_agent: str
    reachable: bool  # a way to reach the operator is given


def identity(settings: BaseSettings) -> Identity:
    """``Name/1.0 (+URL; contact)`` from the CRAWLER_* settings, or in browsers' shape. Raises OperatorError."""
    name = str(settings.get("CRAWLER_NAME") or "").strip()
    if not name or not all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name):
        raise OperatorError(f"CRAWLER_NAME is {name!r}; use letters, digits, - and _ only: robots.txt files name it.")
    url, contact = str(settings.get("CRAWLER_INFO_URL") or ""), str(settings.get("CRAWLER_CONTACT") or "")
    contacts = "; ".join(part for part in (f"+{url}" if url else "", contact) if part)
    agent = f"{name}/1.0 ({contacts})" if contacts else f"{name}/1.0"
    if settings.get("CRAWLER_AGENT_SHAPE") == "compatible":
        agent = f"Mozilla/5.0 (compatible; {'; '.join(filter(None, (f'{name}/1.0', contacts)))})"
    if not (agent.isascii() and agent.isprintable()):
        raise OperatorError("CRAWLER_INFO_URL and CRAWLER_CONTACT must be plain ASCII; they are sent as a header.")
    return Identity(name, agent, bool(contacts))


def own_keys(settings: Mapping[str, Any]) -> KeyRing | None:
    """The keys of IDENTITY_KEY_FILE, or of the file that ``scrapy identity init`` makes; None without one.

    Raises OperatorError.
    """
    from crawlerproject.stores.operator_files.key_file import DEFAULT_FILE, read_keys  # for what signs or verifies

    named = settings.get("IDENTITY_KEY_FILE")
    path = Path(user_path(str(named or DEFAULT_FILE)))
    return read_keys(path) if named or path.exists() else None


def obeyed_for(settings: BaseSettings) -> str:
    """``PURPOSE``, if words of sites that reserve pages from it are obeyed (``CONSENT``); else ""."""
    purpose = str(settings.get("PURPOSE") or PURPOSES[0])
    return purpose if obeys(purpose, str(settings.get("CONSENT") or "auto")) else ""


def documents_asked(settings: BaseSettings) -> frozenset[Source]:
    """Which documents on use hosts are asked for beside robots.txt (``PURPOSE``, ``CONSENT``)."""
    return asked_documents(str(settings.get("PURPOSE") or PURPOSES[0]), str(settings.get("CONSENT") or "auto"))


def preset_of(settings: BaseSettings) -> PacePreset:
    """``PACE_PRESET`` with the single numbers of ``PACE_*`` put in."""
    given = {name: number_of(settings, f"PACE_{name.upper()}") for name in PacePreset._fields}
    if (window := given["window"]) is not None:
        given["window"] = int(window)
    try:
        return pace_preset(settings.get("PACE_PRESET") or "default", given)
    except ValueError as error:
        raise OperatorError(str(error)) from None


def rest_limits_of(settings: BaseSettings) -> RestLimits:
    """``BACKOFF_*`` and ``RETRY_AFTER_MAX_SECONDS``."""
    names = ("BACKOFF_START_SECONDS", "BACKOFF_MAX_SECONDS", "RETRY_AFTER_MAX_SECONDS")
    return RestLimits(*(_seconds(settings, name) for name in names))


def ip_seconds_of(settings: BaseSettings) -> float | None:
    """``PACE_IP_SECONDS``; None when ``PACE_PER_IP`` is off."""
    if not settings.getbool("PACE_PER_IP"):
        return None
    return _seconds(settings, "PACE_IP_SECONDS")


def local_address(given: str | tuple[str, int] | None) -> tuple[str, int] | None:
    """Scrapy's ``DOWNLOAD_BIND_ADDRESS`` and ``bindaddress``: an address of ours, or one with a port (0: any)."""
    return (given, 0) if isinstance(given, str) and given else given or None


def check_local_address(settings: BaseSettings) -> None:
    """Raise OperatorError for an address that this machine has not: every request would fail."""
    address = local_address(settings.get("DOWNLOAD_BIND_ADDRESS"))
    try:
        if address is not None:
            with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as trial:
                trial.bind((address[0], 0))
    except (OSError, TypeError) as error:
        raise OperatorError(
            f"DOWNLOAD_BIND_ADDRESS is {settings['DOWNLOAD_BIND_ADDRESS']!r}; use an IP address of this machine."
        ) from error


def _seconds(settings: BaseSettings, name: str) -> float:
    """The setting, or its default when it is unset or empty."""
    seconds = number_of(settings, name)
    return float(SETTINGS[name].default) if seconds is None else seconds


def number_of(settings: BaseSettings, name: str) -> float | None:
    """A setting of 0 or more; None when it is unset or empty."""
    value = settings.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= LARGEST:
        raise OperatorError(f"{name} must be a number from 0 to {LARGEST:g}, not {value!r}")
    return number
