"""The folder that CRAWLER_INFO_URL leads to: what the bot is, from where it asks, how to slow or block it, whom to ask.

The page in each language of ``bot_words``, the address ranges for programs, what changed by date, and a robots.txt of
its own: files that any web server can serve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network
from itertools import pairwise
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup

from crawlerproject.reports.bot_words import LANGUAGES, PURPOSES, RENDERS, SENTENCES, Words
from crawlerproject.reports.report_page import templates
from crawlerproject.rules.identity.key_ring import DIRECTORY_PATH

RANGES, CHANGES = "ranges.json", "changes.json"
"""Files of the folder beside the pages and robots.txt."""
_ROBOTS = b"# Everything here is meant to be read, by programs too.\nUser-agent: *\nAllow: /\n"
_MOST_CHANGES = 100  # on the page, the latest first (ours)


@dataclass(slots=True, frozen=True)
class Bot:
    """What the page says, in plain values."""

    name: str  # the product token of robots.txt
    user_agent: str
    contact: str
    operator: str
    purpose: str  # in the operator's own words
    addresses: Sequence[str]  # from which it asks, as text (IP addresses or networks)
    start_seconds: float  # pause before anything is known of a host
    least_seconds: float
    most_seconds: float | None
    multiplier: float  # of the mean response time; 0: the pause is fixed
    robots_hours: float
    max_bytes: int
    purpose_word: str = ""  # of the setting PURPOSE
    render: str = "auto"
    signed: bool = False  # its requests are
    quiet: bool = False  # it keeps away from busy hours

    def statements(self) -> dict[str, str]:
        """What site owners rely on, by the names of ``SENTENCES``: a change of it is one that the page lists."""
        most = "∞" if self.most_seconds is None else f"{self.most_seconds:g}"
        pace = (
            f"{self.least_seconds:g}–{most} (× {self.multiplier:g})" if self.multiplier else f"{self.least_seconds:g}"
        )
        return {
            "user-agent": self.user_agent,
            "contact": self.contact,
            "owner": self.operator,
            "purpose": " · ".join(filter(None, (self.purpose_word, self.purpose))),
            "ranges": ", ".join(self.addresses),
            "seconds": pace,
            "rendering": self.render,
            "robots-hours": f"{self.robots_hours:g}",
            "most-bytes": f"{self.max_bytes:,}",
            "signatures": "Web Bot Auth" if self.signed else "",
            "quiet-hours": "× 3" if self.quiet else "",
        }


class Changed(NamedTuple):
    """One line of the page's changes; without a ``what`` it is the first publication."""

    date: str
    what: str = ""
    before: str = ""
    after: str = ""


def bot_page(bot: Bot, language: str = "en", *, files: bool = False, changes: Sequence[Changed] = ()) -> str:
    """The whole page in one language, self-contained, valid HTML; ``files``: with links to the folder's others."""

    def say(of: Words | str, **values: Any) -> Markup:
        words: Words = SENTENCES[of] if isinstance(of, str) else of
        return Markup(getattr(words, language)).format(**values)  # escapes the values

    template = templates().get_template("bot.html")
    languages = {code: ("index.html" if code == "en" else f"{code}.html", name) for code, name in LANGUAGES.items()}
    return template.render(
        bot=bot, say=say, language=language, languages=languages if files else {}, changes=changes[:_MOST_CHANGES],
        purposes=PURPOSES, renders=RENDERS, ranges=RANGES if files else "", keys=DIRECTORY_PATH if bot.signed else "",
    )  # fmt: skip


def bot_folder(bot: Bot, ranges: Sequence[IPv4Network | IPv6Network], before: bytes, now: float) -> dict[str, bytes]:
    """Every file of the folder, by its name; ``before``: the CHANGES that are there, b"" for none.

    ``now`` is epoch seconds. Raises ValueError when ``before`` is not what an earlier call has written.
    """
    entries = _grown(before, bot.statements(), _moment(now)[:10])
    changes = _changes(entries)
    pages = {
        "index.html" if language == "en" else f"{language}.html": bot_page(bot, language, files=True, changes=changes)
        for language in LANGUAGES
    }
    files = {name: page.encode() for name, page in pages.items()}
    files |= {RANGES: client_ranges(ranges, bot.name, now), "robots.txt": _ROBOTS}
    return files | {CHANGES: orjson.dumps(entries, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)}


def client_ranges(ranges: Sequence[IPv4Network | IPv6Network], service: str, now: float) -> bytes:
    """The address ranges as draft-illyes-webbotauth-jafar-00 has them, to be written again daily."""
    prefixes = [{f"ipv{network.version}Prefix": str(network), "service": service} for network in ranges]
    document = {"formatVersion": "1.0", "creationTime": _moment(now), "prefixes": prefixes}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _grown(before: bytes, stated: Mapping[str, str], date: str) -> list[dict[str, Any]]:
    """The entries of CHANGES with what is stated now; what was tried on one day is one entry."""
    try:
        entries = orjson.loads(before) if before else []
        for entry in entries:
            datetime.fromisoformat(entry["date"])
            entry["said"].items()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{CHANGES} is not what was written here ({error})") from None
    if len(entries) > 1 and entries[-1]["date"] == date:
        entries.pop()
    if not entries or entries[-1]["said"] != stated:
        entries.append({"date": date, "said": dict(stated)})
    return list(entries)


def _changes(entries: Sequence[Mapping[str, Any]]) -> list[Changed]:
    """The lines of the page, latest first; of what an older version did not say nothing has changed."""
    found = [Changed(entries[0]["date"])]
    for before, after in pairwise(entries):
        was, now = before["said"], after["said"]
        names = [name for name in now if name in SENTENCES and was.get(name, now[name]) != now[name]]
        found += [Changed(after["date"], name, str(was[name]), str(now[name])) for name in names]
    return found[::-1]


def _moment(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
