"""What a browser made of a page, and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from crawlerproject.errors import FetchError
from crawlerproject.reasons import Reason


@dataclass(slots=True)
class Rendered:
    """One page's stay in the browser; times in epoch seconds."""

    url: str
    plain_id: str = ""  # record id of the plain answer
    browser: str = ""  # name and version
    html: bytes = b""  # the DOM, UTF-8; empty when there is none
    started_at: float = 0.0
    ended_at: float = 0.0
    asked: int = 0  # requests sent, or meant to be
    waited_seconds: float = 0.0  # for turns of hosts
    cached: int = 0  # served from the shared cache
    blocked: Counter[str] = field(default_factory=Counter)  # never asked for, by why
    blocked_urls: list[str] = field(default_factory=list)  # the first of them, "why address"
    navigations: list[str] = field(default_factory=list)  # where scripts wanted to go
    noise: Counter[str] = field(default_factory=Counter)  # dialogs, popups, downloads
    settled: bool = False  # it came to rest before its time was up
    screenshot: bytes = b""
    wait_rule: str = ""
    viewport: str = ""

    def facts(self) -> list[tuple[str, str]]:
        """Lines of the metadata record."""
        lines = [
            ("browser", self.browser),
            ("viewport", self.viewport),
            ("waitRule", self.wait_rule),
            ("settled", "yes" if self.settled else "no"),
            ("requestsSent", str(self.asked)),
            ("requestsFromCache", str(self.cached)),
            ("waitedForTurnsMs", str(round(self.waited_seconds * 1000))),
            *(("requestsBlocked", f"{why} {count}") for why, count in sorted(self.blocked.items())),
            *(("blocked", address) for address in self.blocked_urls),
            *(("navigationNotFollowed", address) for address in self.navigations),
            *((f"{what}Dismissed", str(count)) for what, count in sorted(self.noise.items())),
        ]
        return lines


class RenderFailed(FetchError):
    """A page that the browser could not show. ``again``: the fault was the browser's; the page is tried again."""

    def __init__(self, reason: Reason, detail: str, rendered: Rendered | None = None, *, again: bool = False) -> None:
        super().__init__(reason, detail)
        self.rendered = rendered
        self.again = again
