"""The result of rendering a page, and its cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from crawlerproject.errors import FetchError
from crawlerproject.reasons import Reason


@dataclass(slots=True)
class Rendered:
    """One page's visit to the browser; times are epoch seconds."""

    url: str
    plain_id: str = ""  # WARC record id of the plain response
    browser: str = ""  # name and version
    html: bytes = b""  # the DOM in UTF-8; empty if there is none
    started_at: float = 0.0
    ended_at: float = 0.0
    asked: int = 0  # requests sent, or queued to be sent
    waited_seconds: float = 0.0  # for the turns of hosts
    cached: int = 0  # served from the shared cache
    blocked: Counter[str] = field(default_factory=Counter)  # never sent, by reason
    blocked_urls: list[str] = field(default_factory=list)  # the first ones, as "reason URL"
    navigations: list[str] = field(default_factory=list)  # URLs to which scripts tried to navigate
    noise: Counter[str] = field(default_factory=Counter)  # dialogs, popups, downloads
    settled: bool = False  # it came to rest before its time ran out
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
    """The browser could not render a page. ``again``: through its own fault, so the page is rendered another time."""

    def __init__(self, reason: Reason, detail: str, rendered: Rendered | None = None, *, again: bool = False) -> None:
        super().__init__(reason, detail)
        self.rendered = rendered
        self.again = again
