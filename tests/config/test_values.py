"""Settings as values: who the crawler says it is."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from crawlerproject.config.values import identity

URL, CONTACT = {"CRAWLER_INFO_URL": "https://bot.example/"}, {"CRAWLER_CONTACT": "you@example.org"}


@pytest.mark.parametrize(
    ("settings", "short", "compatible"),
    [
        ({}, "TownBot/1.0", "Mozilla/5.0 (compatible; TownBot/1.0)"),
        (URL, "TownBot/1.0 (+https://bot.example/)", "Mozilla/5.0 (compatible; TownBot/1.0; +https://bot.example/)"),
        (
            URL | CONTACT,
            "TownBot/1.0 (+https://bot.example/; you@example.org)",
            "Mozilla/5.0 (compatible; TownBot/1.0; +https://bot.example/; you@example.org)",
        ),
    ],
)
def test_the_user_agent_has_two_shapes(settings: dict[str, str], short: str, compatible: str) -> None:
    """With what of URL and contact is given; robots.txt knows the same name by either."""
    for shape, sent in (("", short), ("short", short), ("compatible", compatible)):
        who = identity(Settings({"CRAWLER_NAME": "TownBot", "CRAWLER_AGENT_SHAPE": shape, **settings}))
        assert (who.token, who.user_agent, who.reachable) == ("TownBot", sent, bool(settings))
