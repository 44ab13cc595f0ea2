"""Who we say we are: the User-Agent header, and the token that robots.txt files name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


@dataclass(slots=True, frozen=True)
class Identity:
    """One crawler's name and how to reach its operator."""

    token: str  # product token, RFC 9309 2.2.1
    user_agent: str
    reachable: bool  # a way to reach the operator is given


def identity(settings: BaseSettings) -> Identity:
    """``Name/1.0 (+URL; contact)`` from the CRAWLER_* settings. Raises OperatorError."""
    name = str(settings.get("CRAWLER_NAME") or "").strip()
    if not name or not all(message.isascii() and (message.isalnum() or message in "-_") for message in name):
        raise OperatorError(f"CRAWLER_NAME is {name!r}; use letters, digits, - and _ only: robots.txt files name it.")
    url, contact = str(settings.get("CRAWLER_INFO_URL") or ""), str(settings.get("CRAWLER_CONTACT") or "")
    contacts = "; ".join(part for part in (f"+{url}" if url else "", contact) if part)
    agent = f"{name}/1.0 ({contacts})" if contacts else f"{name}/1.0"
    if not (agent.isascii() and agent.isprintable()):
        raise OperatorError("CRAWLER_INFO_URL and CRAWLER_CONTACT must be plain ASCII; they are sent as a header.")
    return Identity(name, agent, bool(contacts))
