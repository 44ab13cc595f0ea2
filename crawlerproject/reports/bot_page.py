"""The page that CRAWLER_INFO_URL leads to: what the bot is, how it behaves, how to slow or block it, whom to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crawlerproject.reports.report_page import templates


@dataclass(slots=True, frozen=True)
class Bot:
    """What the page says, in plain values."""

    name: str  # the product token of robots.txt
    user_agent: str
    contact: str
    operator: str
    purpose: str
    addresses: Sequence[str]  # from which it asks, as text (IP addresses or networks)
    start_seconds: float  # pause before anything is known of a host
    least_seconds: float
    most_seconds: float | None
    multiplier: float  # of the mean response time; 0: the pause is fixed
    robots_hours: float
    max_bytes: int


def bot_page(bot: Bot) -> str:
    """The whole page, self-contained, valid HTML."""
    return templates().get_template("bot.html").render(bot=bot)
