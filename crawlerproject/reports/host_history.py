"""What a crawl did at one host: every attempt with the pause before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from crawlerproject.rules.politeness.pause_audit import LastAnswers, Pause, asked_of
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.log_query import open_log, rows

# A host key without its port, in SQL.
_NAME = "regexp_replace(host, ':[0-9]+$', '')"


class Attempt(NamedTuple):
    """One attempt, and the pause before it at the same host: None before the first, and when it reached none."""

    attempt: dict[str, Any]
    pause: Pause | None

    @property
    def pause_seconds(self) -> float | None:
        """The pause that was kept."""
        return None if self.pause is None else self.pause.kept_seconds

    @property
    def too_soon(self) -> bool:
        """Whether the pause was shorter than promised."""
        return self.pause is not None and self.attempt["delay_seconds"] is not None and self.pause.too_short

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {**self.attempt, "pause_seconds": self.pause_seconds, "too_soon": self.too_soon}


@dataclass(slots=True)
class HostStory:
    """Facts for an answer to a site's owner."""

    host: str
    visits: list[Attempt] = field(default_factory=list)

    @property
    def reached(self) -> list[Attempt]:
        """Those that came to the host; others were refused on our side, or found no way to it."""
        return [visit for visit in self.visits if visit.attempt["ip"]]

    @property
    def statuses(self) -> Counter[str]:
        """Answers by status, failures by reason."""
        return Counter(str(visit.attempt["status"] or visit.attempt["reason"]) for visit in self.visits)

    @property
    def origins(self) -> list[str]:
        """Those that may have a robots.txt for what was asked."""
        hosts = sorted({visit.attempt["host"] for visit in self.visits}) or [self.host]
        return [f"{scheme}://{host}" for host in hosts for scheme in ("https", "http")]

    @property
    def began(self) -> datetime | None:
        """The first attempt."""
        return datetime.fromisoformat(self.visits[0].attempt["time"]) if self.visits else None

    @property
    def received_bytes(self) -> int:
        """On the wire."""
        return sum(visit.attempt["bytes"] or 0 for visit in self.visits)

    @property
    def pauses(self) -> list[float]:
        """All pauses that were kept, seconds."""
        return [visit.pause_seconds for visit in self.visits if visit.pause_seconds is not None]

    @property
    def too_soon(self) -> int:
        """Pauses that were shorter than promised."""
        return sum(visit.too_soon for visit in self.visits)


def host_story(
    folders: Sequence[CrawlDir], host: str, since: str = "", until: str = "", *, subdomains: bool = False
) -> HostStory:
    """The story of a host name (any port; with ``subdomains`` also the names below it) by the logs in ``folders``."""
    name = host.lower().rstrip(".")
    story = HostStory(name)
    below = f" OR {_NAME} LIKE $below" if subdomains else ""
    values = {"name": name, **({"below": f"%.{name}"} if subdomains else {})}
    with open_log([folder.log for folder in folders], since, until) as connection:
        found = rows(
            connection,
            f"SELECT * FROM log WHERE host = $name OR {_NAME} = $name{below} ORDER BY time",
            values,
        )
    answers = LastAnswers()
    for row in found:
        asked, pause = asked_of(row), None
        if asked is not None and (before := answers.ask(host_name(asked.host), asked.end)) is not None:
            pause = Pause(asked.host, before, asked.start, asked.promised_seconds or 0.0)
        story.visits.append(Attempt(row, pause))
    return story


def bare_host(text: str) -> str:
    """A host name from what an operator pastes: a name, a name with a port, or a URL."""
    name = text.strip().partition("://")[2] or text.strip()
    return host_name(name.partition("/")[0].rpartition("@")[2]).lower().rstrip(".")
